#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace kitchen {

/// Severity of a log line, in ascending order.
enum class LogLevel { debug, info, warning, error };

/// "debug", "info", "warning" or "error".
std::string to_string(LogLevel level);

/// A named logger that writes to stderr through spdlog.
///
/// Library code reports once for the whole job: lines appear on rank 0 only (the rank of the calling
/// thread's RankState); `on_every_rank` is for what only that rank knows, such as its own failure.
class Logger {
 public:
  /// Receives (level, text) of each line that passed the rank filter, whatever the print level is.
  using CaptureHook = std::function<void(LogLevel, const std::string&)>;

  explicit Logger(std::string name);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  [[nodiscard]] const std::string& name() const;

  /// Lines below `level` are not printed. Default: warning.
  void set_level(LogLevel level);
  [[nodiscard]] LogLevel level() const;

  void debug(std::string_view text) { log(LogLevel::debug, text); }
  void info(std::string_view text) { log(LogLevel::info, text); }
  void warning(std::string_view text) { log(LogLevel::warning, text); }
  void error(std::string_view text) { log(LogLevel::error, text); }
  void log(LogLevel level, std::string_view text);
  void on_every_rank(LogLevel level, std::string_view text);

  /// Installs `hook` and returns the former one; tests read what was logged.
  CaptureHook set_capture_hook(CaptureHook hook);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The logger of the documented module, named `core.extensions.kitchen`.
Logger& logger();

/// Collects the lines of `logger()` during its lifetime and restores the former hook.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// Number of captured lines of `level` that contain `text`.
  [[nodiscard]] int count(LogLevel level, std::string_view text) const;
  /// All captured lines, "level: text", one a line.
  [[nodiscard]] std::string text() const;

 private:
  struct Lines;
  std::shared_ptr<Lines> lines_;
  Logger::CaptureHook former_;
};

}  // namespace kitchen
