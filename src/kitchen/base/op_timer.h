#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace kitchen {

/// Calls and wall time of one op.
struct OpTime {
  std::int64_t calls = 0;
  double seconds = 0.0;
};

/// Sums wall time by op name while it is attached to a Context (Context::set_op_timer).
class OpTimer {
 public:
  void record(const char* op, double seconds) {
    OpTime& entry = times_[op];
    ++entry.calls;
    entry.seconds += seconds;
  }
  [[nodiscard]] const std::map<std::string, OpTime>& times() const { return times_; }
  void reset() { times_.clear(); }

 private:
  std::map<std::string, OpTime> times_;
};

}  // namespace kitchen
