#pragma once

#include <string>
#include <vector>

namespace kitchen::report {

struct AxisTick {
  double value = 0.0;
  std::string label;
};

/// A range of values of one axis, linear or logarithmic, and its mapping to pixels.
class AxisScale {
 public:
  /// Fits the drawable ones among `values` (finite; positive too on a log axis), widened on both
  /// sides by `padding` times their spread. One value or none gives a range of positive width all
  /// the same. A log axis ends at 1e-300 and 1e300.
  static AxisScale fit(const std::vector<double>& values, bool is_log, double padding);

  /// @throws ValueError unless low < high, both finite, and low > 0 on a log axis.
  AxisScale(double low, double high, bool is_log);

  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return high_; }
  /// Whether `value` has a place: finite, and positive on a log axis.
  [[nodiscard]] bool can_draw(double value) const;
  /// Position of a drawable `value`, 0 at `low`, 1 at `high`.
  [[nodiscard]] double fraction(double value) const;
  /// Round values inside the range, about `wanted` of them: 1, 2 or 5 times a power of ten.
  [[nodiscard]] std::vector<AxisTick> ticks(int wanted) const;

 private:
  [[nodiscard]] std::vector<AxisTick> linear_ticks(int wanted) const;
  [[nodiscard]] std::vector<AxisTick> log_ticks(int wanted) const;

  double low_;
  double high_;
  bool is_log_;
};

/// `value` with as many digits as a step of `step` needs; k, M, G from 10^4 on, exponents below
/// 10^-3.
std::string tick_label(double value, double step);

}  // namespace kitchen::report
