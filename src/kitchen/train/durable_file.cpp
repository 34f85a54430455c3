#include "kitchen/train/durable_file.h"

#include "kitchen/base/error.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

namespace kitchen::train {

namespace {

std::string text_of(int error) {
  return std::generic_category().message(error);
}

[[noreturn]] void throw_io(const std::string& path, const char* action, int error) {
  throw IOError(fmt::format("{}: cannot {}: {}", path, action, text_of(error)));
}

std::string folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

}  // namespace

FileReader::FileReader(std::string path) : path_(std::move(path)) {
  // A pipe without a writer would block open() for ever.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw_io(path_, "open for reading", errno);
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (known && S_ISREG(status.st_mode)) {
    bytes_ = status.st_size;
    return;
  }
  const int error = known ? (S_ISDIR(status.st_mode) ? EISDIR : EINVAL) : errno;
  ::close(descriptor_);
  throw_io(path_, "read as a file", error);
}

FileReader::~FileReader() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FileReader::FileReader(FileReader&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_) {}

void FileReader::read_at(std::int64_t offset, void* target, std::int64_t count) const {
  auto* out = static_cast<char*>(target);
  for (std::int64_t done = 0; done < count;) {
    const ssize_t got =
        ::pread(descriptor_, out + done, static_cast<std::size_t>(count - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_io(path_, "read", errno);
    if (got == 0) {
      throw IOError(fmt::format(
          "{}: wanted {} bytes from byte {} on, got {}: the file is cut; take another copy of it",
          path_, count, offset, done));
    }
    done += got;
  }
}

FileWriter::FileWriter(std::string path, std::int64_t needed_bytes)
    : path_(std::move(path)), needed_bytes_(needed_bytes) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw_io(path_, "open for writing", errno);
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::fail(const char* action, int error) const {
  throw RuntimeError(fmt::format(
      "{}: {} failed after {} of {} needed bytes: {}; {} bytes are free on its file system. "
      "Make room or write to another folder",
      path_, action, bytes_, needed_bytes_, text_of(error), free_bytes(folder_of(path_))));
}

void FileWriter::write(const void* data, std::int64_t count) {
  const auto* in = static_cast<const char*>(data);
  for (std::int64_t done = 0; done < count;) {
    const ssize_t put = ::write(descriptor_, in + done, static_cast<std::size_t>(count - done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("writing", errno);
    done += put;
    bytes_ += put;
  }
  checksum_.update(data, count);
}

void FileWriter::finish() {
  if (::fsync(descriptor_) != 0) fail("forcing to disk", errno);
  // Network file systems report a full disk only here.
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("closing", errno);
}

std::string read_file(const std::string& path) {
  const FileReader file(path);
  std::string contents(static_cast<std::size_t>(file.bytes()), '\0');
  file.read_at(0, contents.data(), file.bytes());
  return contents;
}

void sync_folder(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_io(path, "open the folder", errno);
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  // Some network file systems have no fsync of folders; their renames are durable on the server.
  if (error != 0 && error != EINVAL) throw_io(path, "force the folder to disk", error);
}

void replace_file(const std::string& path, std::string_view contents) {
  const std::string temporary = path + ".tmp";
  FileWriter writer(temporary, static_cast<std::int64_t>(contents.size()));
  writer.write(contents.data(), static_cast<std::int64_t>(contents.size()));
  writer.finish();
  if (std::rename(temporary.c_str(), path.c_str()) != 0) throw_io(path, "replace", errno);
  sync_folder(folder_of(path));
}

std::int64_t free_bytes(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) throw_io(path, "ask for free space", errno);
  return static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize);
}

void require_free_bytes(const std::string& path, std::int64_t needed_bytes) {
  const std::int64_t free = free_bytes(path);
  if (needed_bytes <= free) return;
  throw RuntimeError(
      fmt::format("{}: {} bytes are needed and {} are free on its file system. Make room or write "
                  "to another folder",
                  path, needed_bytes, free));
}

void check_writable(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path)) {
    throw IOError(fmt::format(
        "{}: cannot be made a folder: {}; give the path of a folder that can be written", path,
        error ? error.message() : "it is a file"));
  }
  const std::string probe = path + "/.write_probe";
  try {
    FileWriter writer(probe, 1);
    writer.write("x", 1);
    writer.finish();
  } catch (const Error& cause) {
    ::unlink(probe.c_str());
    throw IOError(
        fmt::format("{}: the folder cannot be written ({}); give another one", path, cause.what()));
  }
  ::unlink(probe.c_str());
}

}  // namespace kitchen::train
