#pragma once

#include <cstdint>
#include <ostream>
#include <string>

namespace kitchen::train {

/// "0:07", "12:34", "3:04:05", "2d 03:04"; "--:--" for what is not known.
std::string format_duration(double seconds);

/// Columns of the terminal behind a file descriptor, 80 if it is none.
int terminal_width(int descriptor);

/// What the progress line shows of one step.
struct ProgressState {
  std::int64_t step = 0;  ///< steps done since the start of the whole training
  double loss = 0.0;
  double learning_rate = 0.0;
  double tokens_per_s = 0.0;
  double elapsed_s = 0.0;  ///< since this run began
};

/// One line that is written over and over on a terminal; a line now and then elsewhere (file,
/// pipe).
///
/// The line never wraps: on a narrow terminal first the bar goes, then rate and learning rate, and
/// what still does not fit is cut.
class Progress {
 public:
  struct Options {
    std::int64_t total_steps = 0;
    std::int64_t first_step = 0;  ///< steps that were done before this run began
    bool is_terminal = false;
    int width = 80;
    std::int64_t log_interval = 10;  ///< steps between lines where there is no terminal
  };

  /// `out` must outlive the object. @throws ValueError if log_interval is below 1.
  Progress(std::ostream& out, const Options& options);

  void update(const ProgressState& state);
  /// Prints a line of text above the progress line.
  void message(const std::string& text);
  /// Ends the line, so that what follows begins at the left.
  void finish();

 private:
  [[nodiscard]] std::string line(const ProgressState& state) const;
  void draw();

  std::ostream& out_;
  Options options_;
  std::string shown_;
};

}  // namespace kitchen::train
