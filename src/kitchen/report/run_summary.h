#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kitchen::report {

/// One line of metrics.jsonl. A value that is absent was not measured; NaN means that it was not
/// finite, which JSON writes as null or as one of the strings "nan", "inf" and "-inf".
struct MetricPoint {
  std::int64_t step = 0;
  std::optional<double> tokens;      ///< seen so far
  std::optional<double> train_loss;  ///< nats a token
  std::optional<double> val_loss;    ///< nats a token
  std::optional<double> lr;
  std::optional<double> grad_norm;  ///< before clipping
  std::optional<double> tokens_per_s;
};

/// What quantization did to one operand of one GEMM.
struct QuantizationError {
  std::string module;             ///< path in the model, e.g. decoder.layers.0.mlp.linear_fc1
  std::string operand;            ///< x, w or g
  std::string gemm;               ///< fprop, dgrad or wgrad
  std::string scheme;             ///< format and granularity
  std::optional<double> sqnr_db;  ///< absent where it was null: no noise or no signal
  double saturated = 0.0;         ///< share of elements in [0, 1]
  double underflowed = 0.0;       ///< share of elements in [0, 1]
  std::int64_t non_finite = 0;    ///< elements
  std::int64_t elements = 0;
};

/// Time that one kind of op took over the whole run.
struct OpTime {
  std::string op;
  std::int64_t calls = 0;
  double seconds = 0.0;
};

/// A file that was read.
struct RunFile {
  std::string name;
  std::uintmax_t bytes = 0;
};

/// What a run folder says about one training run.
struct RunSummary {
  std::string name;                  ///< last part of the folder's path
  std::vector<MetricPoint> metrics;  ///< ascending steps, each once
  /// Settings by dotted path, e.g. "optimizer.lr", with their values as text; ascending by path.
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<QuantizationError> quantization;
  std::vector<OpTime> op_times;
  std::string samples;         ///< generated text
  std::vector<RunFile> files;  ///< what was read
  std::vector<std::string>
      notes;  ///< what a reader must know, e.g. that a file ended in a torn line

  /// The recipe's name by the settings: `recipe`, else `kitchen_config_file`, else
  /// `kitchen_recipe_number`, else `kitchen_recipe_name`, wherever they are nested and with '-' or '_'; "–" if there is none.
  [[nodiscard]] std::string recipe() const;
  /// The last measured validation loss and its step; nullptr if none was measured.
  [[nodiscard]] const MetricPoint* final_validation() const;
};

/// Reads a run folder: metrics.jsonl and config.json, and quantization.json, op_times.json and
/// samples.txt where they exist.
///
/// A run that crashed is readable: a last line of metrics.jsonl without line end that does not
/// parse is dropped, and steps that a resumed run logged again count as last logged; both leave a
/// note.
/// @throws IOError    if the folder, metrics.jsonl or config.json is missing or cannot be read.
/// @throws ValueError for malformed content, naming file, line (metrics.jsonl) or entry, and key.
RunSummary read_run(const std::string& folder);

}  // namespace kitchen::report
