#include "kitchen/train/quantization_monitor.h"

#include "kitchen/base/logger.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace kitchen::train {

namespace {

void accumulate(ops::QuantizationStats& sum, const ops::QuantizationStats& more) {
  sum.signal_power += more.signal_power;
  sum.noise_power += more.noise_power;
  sum.num_elements += more.num_elements;
  sum.num_saturated += more.num_saturated;
  sum.num_underflowed += more.num_underflowed;
  sum.num_non_finite += more.num_non_finite;
}

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

}  // namespace

void QuantizationMonitor::on_quantized(const modules::OperandInfo& info, const Tensor& source,
                                       const QuantizedMatrix& quantized) {
  Entry& entry = entries_[{info.module, info.operand, info.product}];
  entry.scheme = to_string(quantized.spec);
  const ops::QuantizationStats stats = ops::quantization_stats(source, quantized);
  accumulate(entry.stats, stats);
  if (stats.num_non_finite == 0 || has_warned_) return;
  has_warned_ = true;
  logger().warning(info.module + ": " + std::to_string(stats.num_non_finite) + " of " +
                   std::to_string(stats.num_elements) + " elements of " + info.operand + " in " +
                   info.product + " are NaN or Inf before quantization to '" + entry.scheme +
                   "'; later operands are counted only");
}

void QuantizationMonitor::reset() {
  entries_.clear();
  has_warned_ = false;
}

ops::QuantizationStats QuantizationMonitor::total() const {
  ops::QuantizationStats sum;
  for (const auto& [key, entry] : entries_) accumulate(sum, entry.stats);
  return sum;
}

std::string QuantizationMonitor::counts_json() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [key, entry] : entries_) {
    const auto& [module, operand, product] = key;
    list.push_back({{"module", module},
                    {"operand", operand},
                    {"gemm", product},
                    {"elements", entry.stats.num_elements},
                    {"saturated", entry.stats.num_saturated},
                    {"underflowed", entry.stats.num_underflowed},
                    {"non_finite", entry.stats.num_non_finite}});
  }
  return list.dump();
}

std::string QuantizationMonitor::to_json() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [key, entry] : entries_) {
    const auto& [module, operand, product] = key;
    const ops::QuantizationStats& stats = entry.stats;
    const double snr = stats.snr_db();
    nlohmann::ordered_json row;
    row["module"] = module;
    row["operand"] = operand;
    row["gemm"] = product;
    row["scheme"] = entry.scheme;
    if (std::isfinite(snr)) {
      row["sqnr_db"] = snr;
    } else {
      row["sqnr_db"] = nullptr;
    }
    row["saturated"] = share(stats.num_saturated, stats.num_elements);
    row["underflowed"] = share(stats.num_underflowed, stats.num_elements);
    row["non_finite"] = stats.num_non_finite;
    row["elements"] = stats.num_elements;
    list.push_back(std::move(row));
  }
  return list.dump(1);
}

}  // namespace kitchen::train
