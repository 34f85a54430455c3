#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kitchen {

/// One collective as a rank has started it.
struct CollectiveRecord {
  std::string op;            ///< "all_reduce", "all_gather", ...
  std::string group;         ///< the group's name: "tp", "ep", ...
  std::int64_t bytes = 0;    ///< of the tensor that this rank passes in
  bool in_backward = false;  ///< started by a Function's backward
};

/// "forward all_gather tp".
std::string to_string(const CollectiveRecord& record);

/// Lists the collectives that this rank starts during its lifetime; groups of one rank start none.
/// The innermost recorder of the rank gets them.
class CollectiveRecorder {
 public:
  CollectiveRecorder();
  ~CollectiveRecorder();
  CollectiveRecorder(const CollectiveRecorder&) = delete;
  CollectiveRecorder& operator=(const CollectiveRecorder&) = delete;

  [[nodiscard]] const std::vector<CollectiveRecord>& records() const { return records_; }
  /// to_string of each record.
  [[nodiscard]] std::vector<std::string> lines() const;
  void clear() { records_.clear(); }

  /// Adds `record` to this rank's recorder, if there is one, with in_backward as BackwardScope
  /// says.
  static void note(CollectiveRecord record);

 private:
  std::vector<CollectiveRecord> records_;
  CollectiveRecorder* former_;
};

/// Marks what this rank starts during its lifetime as belonging to backward.
class BackwardScope {
 public:
  BackwardScope();
  ~BackwardScope();
  BackwardScope(const BackwardScope&) = delete;
  BackwardScope& operator=(const BackwardScope&) = delete;

 private:
  bool former_;
};

}  // namespace kitchen
