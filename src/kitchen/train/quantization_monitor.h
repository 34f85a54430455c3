#pragma once

#include "kitchen/modules/quantized_operand.h"
#include "kitchen/ops/quantize.h"

#include <map>
#include <string>
#include <tuple>

namespace kitchen::train {

/// Measures what quantization does to each operand of each layer while it is installed (OperandObserverScope).
/// The first operand with a NaN or Inf since the last reset gets one line in the log.
/// Costs a pass over each operand, so the trainer installs it on some steps only.
class QuantizationMonitor : public modules::OperandObserver {
 public:
  void on_quantized(const modules::OperandInfo& info, const Tensor& source,
                    const QuantizedMatrix& quantized) override;

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  /// Totals over all operands since the last reset.
  [[nodiscard]] ops::QuantizationStats total() const;
  void reset();

  /// A JSON list, one object an operand: module, operand, gemm, scheme, sqnr_db, shares and counts.
  [[nodiscard]] std::string to_json() const;
  /// The counts alone, on one line: module, operand, gemm, elements, saturated, underflowed, non_finite.
  [[nodiscard]] std::string counts_json() const;

 private:
  struct Entry {
    std::string scheme;
    ops::QuantizationStats stats;
  };
  using Key = std::tuple<std::string, std::string, std::string>;

  std::map<Key, Entry> entries_;
  bool has_warned_ = false;  ///< of a value that is not finite, since the last reset
};

}  // namespace kitchen::train
