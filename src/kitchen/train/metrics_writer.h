#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kitchen::train {

/// A value that is JSON text already, such as a list; without line ends.
struct JsonText {
  std::string text;
};

using MetricValue = std::variant<std::int64_t, double, std::string, JsonText>;

/// What is logged about one step, in the order in which it is written.
struct MetricsLine {
  std::int64_t step = 0;
  std::vector<std::pair<std::string, MetricValue>> values;
  /// What depends on the clock. Written last, so that two equal runs differ in the tail of a line
  /// only.
  std::vector<std::pair<std::string, double>> times;
};

/// One JSON object without white space and line end: {"step":1,"loss":5.5,...}.
///
/// Numbers have the fewest digits that give the same double back. JSON has no NaN and no infinity:
/// they become the strings "nan", "inf" and "-inf".
std::string to_json_line(const MetricsLine& line);

/// Appends a line a step to metrics.jsonl; each is handed to the system at once, so that a killed
/// run leaves all lines but at most the last one, which may be cut.
class MetricsWriter {
 public:
  /// @param resume_step Nothing for a new run. Else lines of later steps, and a last line that was
  /// cut, are dropped, since they are going to be computed again.
  /// @throws ValueError if a new run finds a file with lines in it; RuntimeError naming file and
  /// line if a line to be kept is no JSON object with a step; IOError if the file cannot be used.
  explicit MetricsWriter(std::string path, std::optional<std::int64_t> resume_step = std::nullopt);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  /// @throws RuntimeError naming the path and the cause.
  void write(const MetricsLine& line);

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// Writes the effective configuration, indented, in one step.
/// @throws ValueError if `json_text` is no JSON.
void write_config_json(const std::string& path, const std::string& json_text);

}  // namespace kitchen::train
