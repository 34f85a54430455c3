#include "kitchen/train/checksum.h"

#include "kitchen/train/durable_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <new>
#include <vector>

namespace kitchen::train {

struct Checksum::State {
  State() : xxh(XXH3_createState()) {
    if (xxh == nullptr) throw std::bad_alloc();
    XXH3_64bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  XXH3_state_t* xxh;
};

Checksum::Checksum() : state_(std::make_unique<State>()) {}
Checksum::~Checksum() = default;
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;

void Checksum::update(const void* data, std::int64_t bytes) {
  if (bytes > 0) XXH3_64bits_update(state_->xxh, data, static_cast<std::size_t>(bytes));
}

std::string Checksum::hex() const {
  return fmt::format("{:016x}", XXH3_64bits_digest(state_->xxh));
}

std::string checksum_of(std::string_view bytes) {
  Checksum checksum;
  checksum.update(bytes.data(), static_cast<std::int64_t>(bytes.size()));
  return checksum.hex();
}

std::string checksum_of_file(const std::string& path) {
  const FileReader file(path);
  Checksum checksum;
  std::vector<char> block(static_cast<std::size_t>(std::min<std::int64_t>(file.bytes(), 1 << 20)));
  for (std::int64_t done = 0; done < file.bytes();) {
    const std::int64_t count =
        std::min(file.bytes() - done, static_cast<std::int64_t>(block.size()));
    file.read_at(done, block.data(), count);
    checksum.update(block.data(), count);
    done += count;
  }
  return checksum.hex();
}

}  // namespace kitchen::train
