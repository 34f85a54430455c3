#pragma once

#include "kitchen/analysis/timing.h"
#include "kitchen/base/context.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kitchen::analysis {

/// One way of quantizing a bfloat16 matrix, or the copy that it is held against.
struct QuantizeRow {
  std::string name;
  std::string shape;
  double bytes = 0.0;  ///< that must be read and written, each time an element is touched
  Timing timing;
  Timing copy;  ///< of the same matrix, in the same repeats
  double copy_bytes = 0.0;

  [[nodiscard]] double gigabytes_per_second() const;  ///< of the median
  /// The share of the copy's bandwidth, of medians.
  [[nodiscard]] double share_of_copy() const;
  /// The same of the fastest repeats: less disturbed by other programs.
  [[nodiscard]] double fastest_share_of_copy() const;
};

/// Quantization of a random bfloat16 matrix to E4M3 in turns with a plain copy of it, on as many
/// threads as `context` has set: the kernels on memory that is already there, then the ops, which
/// allocate their results.
/// @throws ValueError unless both sizes are positive.
std::vector<QuantizeRow> benchmark_quantize(const ContextPtr& context, std::int64_t rows,
                                            std::int64_t cols, const Repeats& repeats);

std::string to_text(const std::vector<QuantizeRow>& rows);
std::string to_json(const std::vector<QuantizeRow>& rows);

}  // namespace kitchen::analysis
