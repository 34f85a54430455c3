#include "kitchen/analysis/timing.h"

#include "kitchen/base/error.h"

#include <algorithm>
#include <chrono>

namespace kitchen::analysis {

double Timing::median() const {
  if (seconds.empty()) return 0.0;
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : 0.5 * (sorted[middle - 1] + sorted[middle]);
}

double Timing::fastest() const {
  return seconds.empty() ? 0.0 : *std::min_element(seconds.begin(), seconds.end());
}

double Timing::slowest() const {
  return seconds.empty() ? 0.0 : *std::max_element(seconds.begin(), seconds.end());
}

double Timing::spread() const {
  const double middle = median();
  return middle > 0 ? (slowest() - fastest()) / middle : 0.0;
}

Timing measure(const std::function<void()>& work, const Repeats& repeats) {
  return measure_in_turns({work}, repeats).front();
}

std::vector<Timing> measure_in_turns(const std::vector<std::function<void()>>& works,
                                     const Repeats& repeats) {
  if (repeats.timed < 1 || repeats.warm_up < 0) {
    throw ValueError("measure: " + std::to_string(repeats.timed) + " repeats after " +
                     std::to_string(repeats.warm_up) +
                     " for warm-up, expected at least 1 after at least 0");
  }
  std::vector<Timing> timings(works.size());
  for (int i = -repeats.warm_up; i < repeats.timed; ++i) {
    for (std::size_t work = 0; work < works.size(); ++work) {
      const auto start = std::chrono::steady_clock::now();
      works[work]();
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
      if (i >= 0) timings[work].seconds.push_back(time.count());
    }
  }
  return timings;
}

}  // namespace kitchen::analysis
