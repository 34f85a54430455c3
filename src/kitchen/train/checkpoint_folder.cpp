#include "kitchen/train/checkpoint_folder.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/train/durable_file.h"

#include <fmt/format.h>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace kitchen::train {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "iter_";

std::optional<std::int64_t> parse_step(std::string_view digits) {
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && step >= 0 ? std::optional(step) : std::nullopt;
}

void rename_folder(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    throw RuntimeError(fmt::format("{}: cannot be renamed to {}: {}", from, to,
                                   std::generic_category().message(errno)));
  }
}

/// What cannot be deleted costs space, not correctness: a warning is enough.
void remove_folder(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) logger().warning(fmt::format("{}: cannot be deleted: {}", path, error.message()));
}

std::string deleting_folder(const std::string& root, std::int64_t step) {
  return fmt::format("{}/.old-{}{:07}", root, kPrefix, step);
}

}  // namespace

std::string checkpoint_folder(const std::string& root, std::int64_t step) {
  return fmt::format("{}/{}{:07}", root, kPrefix, step);
}

std::string temporary_folder(const std::string& root, std::int64_t step) {
  return fmt::format("{}/.tmp-{}{:07}", root, kPrefix, step);
}

std::vector<std::int64_t> checkpoint_steps(const std::string& root) {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.rfind(kPrefix, 0) != 0) continue;
    const auto step = parse_step(std::string_view(name).substr(kPrefix.size()));
    if (step && checkpoint_folder(root, *step) == root + "/" + name) steps.push_back(*step);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw IOError(
        fmt::format("{}: the checkpoint folder cannot be listed: {}", root, error.message()));
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<std::int64_t> read_tracker(const std::string& root) {
  const std::string path = root + "/" + kTrackerName;
  if (!fs::exists(path)) return std::nullopt;
  const std::string text = read_file(path);
  // The newline proves that no digit is missing at the end.
  if (text.empty() || text.back() != '\n') return std::nullopt;
  return parse_step(std::string_view(text).substr(0, text.size() - 1));
}

void write_tracker(const std::string& root, std::int64_t step) {
  replace_file(root + "/" + kTrackerName, std::to_string(step) + "\n");
}

void publish_folder(const std::string& root, std::int64_t step) {
  const std::string temporary = temporary_folder(root, step);
  const std::string target = checkpoint_folder(root, step);
  if (!fs::exists(target)) {
    rename_folder(temporary, target);
    sync_folder(root);
    return;
  }
  // Exchanging the names keeps one complete checkpoint of this step at every moment.
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    sync_folder(root);
    remove_folder(temporary);
    return;
  }
  // File systems without the exchange, such as NFS: the old one waits aside until the new one is
  // there.
  rename_folder(target, deleting_folder(root, step));
  rename_folder(temporary, target);
  sync_folder(root);
  remove_folder(deleting_folder(root, step));
}

void remove_checkpoint(const std::string& root, std::int64_t step) {
  const std::string aside = deleting_folder(root, step);
  rename_folder(checkpoint_folder(root, step), aside);
  remove_folder(aside);
}

void remove_leftovers(const std::string& root) {
  std::vector<fs::path> leftovers;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    for (const char* mark : {".tmp-", ".old-"}) {
      if (name.rfind(mark + std::string(kPrefix), 0) == 0) leftovers.push_back(it->path());
    }
  }
  for (const fs::path& leftover : leftovers) remove_folder(leftover.string());
}

}  // namespace kitchen::train
