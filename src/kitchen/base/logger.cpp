#include "kitchen/base/logger.h"

#include "kitchen/base/rank_state.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <mutex>
#include <utility>
#include <vector>

namespace kitchen {

namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

std::string to_string(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error: return "error";
  }
  return "unknown";
}

struct Logger::Impl {
  std::string name;
  LogLevel level = LogLevel::warning;
  std::shared_ptr<spdlog::logger> out;
  CaptureHook hook;
  std::mutex mutex;  // ranks may be threads of one process
};

Logger::Logger(std::string name) : impl_(std::make_unique<Impl>()) {
  impl_->name = std::move(name);
  impl_->out = std::make_shared<spdlog::logger>(
      impl_->name, std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  impl_->out->set_pattern("%^%l%$: %v");
  impl_->out->set_level(spdlog::level::debug);  // the filter is ours: the hook sees every line
}

Logger::~Logger() = default;

const std::string& Logger::name() const { return impl_->name; }

void Logger::set_level(LogLevel level) { impl_->level = level; }

LogLevel Logger::level() const { return impl_->level; }

void Logger::log(LogLevel level, std::string_view text) {
  const RankState& rank = current_rank_state();
  if (rank.rank() == 0 && rank.logs()) on_every_rank(level, text);
}

void Logger::on_every_rank(LogLevel level, std::string_view text) {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  if (impl_->hook) impl_->hook(level, std::string(text));
  if (level >= impl_->level) impl_->out->log(to_spdlog(level), "{}", text);
}

Logger::CaptureHook Logger::set_capture_hook(CaptureHook hook) {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  return std::exchange(impl_->hook, std::move(hook));
}

Logger& logger() {
  static Logger instance("core.extensions.kitchen");
  return instance;
}

struct LogCapture::Lines {
  std::vector<std::pair<LogLevel, std::string>> entries;
};

LogCapture::LogCapture() : lines_(std::make_shared<Lines>()) {
  former_ = logger().set_capture_hook([lines = lines_](LogLevel level, const std::string& text) {
    lines->entries.emplace_back(level, text);
  });
}

LogCapture::~LogCapture() { logger().set_capture_hook(former_); }

int LogCapture::count(LogLevel level, std::string_view text) const {
  int found = 0;
  for (const auto& [entry_level, line] : lines_->entries) {
    if (entry_level == level && line.find(text) != std::string::npos) ++found;
  }
  return found;
}

std::string LogCapture::text() const {
  std::string all;
  for (const auto& [entry_level, line] : lines_->entries) {
    all += to_string(entry_level) + ": " + line + "\n";
  }
  return all;
}

}  // namespace kitchen
