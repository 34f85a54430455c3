#pragma once

#include <functional>
#include <string>
#include <vector>

namespace kitchen::analysis {

/// Wall times of repeats of one piece of work, seconds.
struct Timing {
  std::vector<double> seconds;

  [[nodiscard]] double median() const;
  [[nodiscard]] double fastest() const;
  [[nodiscard]] double slowest() const;
  /// (slowest - fastest) / median.
  [[nodiscard]] double spread() const;
};

/// How often work is repeated.
struct Repeats {
  int warm_up = 2;  ///< not counted: caches, pages and clocks settle
  int timed = 7;
};

/// @throws ValueError if fewer than 1 repeat is asked for, or a negative warm-up.
Timing measure(const std::function<void()>& work, const Repeats& repeats);

/// Times several pieces of work that are to be compared: in each repeat one after the other, so that
/// a change of the machine's load meets all of them. One Timing a piece, in their order.
/// @throws ValueError as measure.
std::vector<Timing> measure_in_turns(const std::vector<std::function<void()>>& works,
                                     const Repeats& repeats);

}  // namespace kitchen::analysis
