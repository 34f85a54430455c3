#pragma once

#include "kitchen/train/checksum.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace kitchen::train {

/// A file that is read at given places. Move-only.
class FileReader {
 public:
  /// @throws IOError naming path and cause; a folder is refused.
  explicit FileReader(std::string path);
  ~FileReader();
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Size when it was opened.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  /// Reads exactly `count` bytes from byte `offset` on.
  /// @throws IOError naming the bytes wanted and got.
  void read_at(std::int64_t offset, void* target, std::int64_t count) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t bytes_ = 0;
};

/// A new file that is written once, from start to end, and then forced to the disk. Move-only.
class FileWriter {
 public:
  /// Creates or empties `path`.
  /// @param needed_bytes What the caller is going to write, for the message of a full disk.
  /// @throws IOError naming path and cause.
  FileWriter(std::string path, std::int64_t needed_bytes);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  /// @throws RuntimeError naming path, cause, needed and free bytes.
  void write(const void* data, std::int64_t count);
  /// Forces the bytes to the disk and closes. Without it the file counts as unfinished.
  void finish();

  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  /// Checksum of the bytes that were handed to write(), not of what the disk holds.
  [[nodiscard]] std::string checksum() const { return checksum_.hex(); }

 private:
  [[noreturn]] void fail(const char* action, int error) const;

  std::string path_;
  int descriptor_ = -1;
  std::int64_t needed_bytes_;
  std::int64_t bytes_ = 0;
  Checksum checksum_;
};

/// All bytes of a file. @throws IOError naming path and cause.
std::string read_file(const std::string& path);

/// Forces the names inside a folder to the disk: a rename is durable only after it.
void sync_folder(const std::string& path);

/// Gives `path` new contents such that a reader, and a machine that loses power, sees the old or
/// the new file and never a mixture.
void replace_file(const std::string& path, std::string_view contents);

/// Bytes that the file system of `path` has left for this user.
std::int64_t free_bytes(const std::string& path);

/// @throws RuntimeError with needed and free bytes if `needed_bytes` do not fit.
void require_free_bytes(const std::string& path, std::int64_t needed_bytes);

/// Makes the folder `path` with its parents if it is missing, then writes and removes a probe file.
/// Called before work starts, so that hours of training do not end at the first save.
/// @throws IOError naming path and cause.
void check_writable(const std::string& path);

}  // namespace kitchen::train
