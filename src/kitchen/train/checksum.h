#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kitchen::train {

/// Running 64-bit checksum (XXH3) of a byte stream: finds damage, proves no origin.
/// @source xxHash, https://github.com/Cyan4973/xxHash
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;

  void update(const void* data, std::int64_t bytes);
  /// Sixteen lower-case hexadecimal digits of all bytes so far.
  [[nodiscard]] std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Checksum of `bytes` in the form of Checksum::hex.
std::string checksum_of(std::string_view bytes);

/// Checksum of a whole file. @throws IOError if it cannot be read.
std::string checksum_of_file(const std::string& path);

}  // namespace kitchen::train
