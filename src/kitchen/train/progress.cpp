#include "kitchen/train/progress.h"

#include "kitchen/base/error.h"

#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace kitchen::train {

namespace {

constexpr int kBarWidth = 20;
constexpr const char* kClearLine = "\r\x1b[K";

std::string bar(double fraction) {
  const auto full = static_cast<std::size_t>(fraction * kBarWidth);
  return "[" + std::string(full, '#') + std::string(kBarWidth - full, '-') + "]";
}

std::string rate(double tokens_per_s) {
  if (!(tokens_per_s >= 0)) return "- tok/s";
  if (tokens_per_s < 1e3) return fmt::format("{:.0f} tok/s", tokens_per_s);
  if (tokens_per_s < 1e6) return fmt::format("{:.1f}k tok/s", tokens_per_s / 1e3);
  return fmt::format("{:.1f}M tok/s", tokens_per_s / 1e6);
}

}  // namespace

std::string format_duration(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "--:--";
  const auto total = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t s = total % 60;
  const std::int64_t m = total / 60 % 60;
  const std::int64_t h = total / 3600 % 24;
  const std::int64_t d = total / 86400;
  if (d > 0) return fmt::format("{}d {:02}:{:02}", d, h, m);
  if (h > 0) return fmt::format("{}:{:02}:{:02}", h, m, s);
  return fmt::format("{}:{:02}", m, s);
}

int terminal_width(int descriptor) {
  winsize size{};
  const bool known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

Progress::Progress(std::ostream& out, const Options& options) : out_(out), options_(options) {
  if (options_.log_interval < 1) {
    throw ValueError(
        fmt::format("Progress: --log-interval {}, expected at least 1", options_.log_interval));
  }
}

std::string Progress::line(const ProgressState& state) const {
  const auto total = static_cast<double>(std::max<std::int64_t>(options_.total_steps, 1));
  const double fraction = std::clamp(static_cast<double>(state.step) / total, 0.0, 1.0);
  const auto done_here = static_cast<double>(state.step - options_.first_step);
  const auto left = static_cast<double>(options_.total_steps - state.step);
  const double eta_s = done_here > 0 ? state.elapsed_s / done_here * left : -1.0;
  const std::string digits = std::to_string(options_.total_steps);
  const std::string steps =
      fmt::format("step {:>{}}/{}", state.step, static_cast<int>(digits.size()), digits);
  const std::string loss = fmt::format("loss {:.4f}", state.loss);
  const std::string eta = "ETA " + format_duration(eta_s);
  const std::string details =
      fmt::format("lr {:.2e}  {}", state.learning_rate, rate(state.tokens_per_s));
  const std::string with_details = fmt::format("{}  {}  {}", loss, details, eta);
  const std::string longest = fmt::format("{} {}  {}", steps, bar(fraction), with_details);
  if (!options_.is_terminal) return fmt::format("{}  {}", steps, with_details);
  // The last column stays free: some terminals wrap as soon as it is written.
  const auto room = static_cast<std::size_t>(std::max(options_.width - 1, 1));
  for (const std::string& text : {longest, fmt::format("{}  {}", steps, with_details),
                                  fmt::format("{}  {}  {}", steps, loss, eta)}) {
    if (text.size() <= room) return text;
  }
  return fmt::format("{}  {}", steps, loss).substr(0, room);
}

void Progress::update(const ProgressState& state) {
  shown_ = line(state);
  if (options_.is_terminal) {
    draw();
  } else if (state.step % options_.log_interval == 0 || state.step == options_.total_steps ||
             state.step == options_.first_step + 1) {
    out_ << shown_ << '\n' << std::flush;
  }
}

void Progress::draw() {
  out_ << kClearLine << shown_ << std::flush;
}

void Progress::message(const std::string& text) {
  if (!options_.is_terminal) {
    out_ << text << '\n' << std::flush;
    return;
  }
  out_ << kClearLine << text << '\n';
  if (!shown_.empty()) draw();
}

void Progress::finish() {
  if (options_.is_terminal && !shown_.empty()) out_ << '\n' << std::flush;
  shown_.clear();
}

}  // namespace kitchen::train
