#include "kitchen/analysis/tensor_inspection.h"

#include "kitchen/base/error.h"
#include "kitchen/formats/codec.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/report/line_chart.h"
#include "kitchen/train/tensor_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace kitchen::analysis {

namespace {

constexpr double kBinsAnOctave = 4.0;

struct BinSums {
  std::int64_t count = 0;
  double squares = 0.0;
  double largest = 0.0;
};

ElementErrors element_errors(const Tensor& x, const Tensor& restored) {
  const std::vector<float> values = ops::cast(x, DType::float32).to_vector<float>();
  const std::vector<float> found = restored.to_vector<float>();
  ElementErrors errors;
  std::map<int, BinSums> sums;
  double total = 0.0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    const double error = std::fabs(value - static_cast<double>(found[i]));
    // A block that holds a NaN comes back as NaN; the share of such elements is counted elsewhere.
    if (!std::isfinite(value) || !std::isfinite(error)) continue;
    ++count;
    total += error;
    errors.max_error = std::max(errors.max_error, error);
    if (value == 0.0) continue;
    BinSums& bin = sums[static_cast<int>(std::floor(kBinsAnOctave * std::log2(std::fabs(value))))];
    const double relative = error / std::fabs(value);
    ++bin.count;
    bin.squares += relative * relative;
    bin.largest = std::max(bin.largest, relative);
  }
  errors.mean_error = count > 0 ? total / static_cast<double>(count) : 0.0;
  for (const auto& [index, bin] : sums) {
    errors.bins.push_back({std::exp2((index + 0.5) / kBinsAnOctave), bin.count,
                           std::sqrt(bin.squares / static_cast<double>(bin.count)), bin.largest});
  }
  return errors;
}

/// The factors that the codes are multiplied with, one a stored scale.
std::vector<float> factors_of(const QuantizedMatrix& copy) {
  if (!copy.spec.has_byte_scales()) return copy.scale_inv.to_vector<float>();
  const std::vector<std::uint8_t> codes = train::bytes_of(copy.scale_inv);
  const bool is_nvfp4 = copy.spec.rule == formats::ScaleRule::nvfp4;
  std::vector<float> amax;
  if (is_nvfp4) amax = copy.amax.to_vector<float>();
  std::vector<float> factors(codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    factors[i] = is_nvfp4 ? formats::decode(codes[i], formats::kE4M3) *
                                amax[i / (codes.size() / amax.size())] * (1.0f / 2688.0f)
                          : formats::e8m0_decode(codes[i]);
  }
  return factors;
}

void count_scales(const QuantizedMatrix& copy, Inspection& inspection) {
  for (const float factor : factors_of(copy)) {
    ++inspection.num_scales;
    if (std::isfinite(factor) && factor > 0.0f) {
      ++inspection.scale_octaves[std::ilogb(factor)];
    } else {
      ++inspection.num_special_scales;
    }
  }
}

double bits_of_copy(const QuantizedMatrix& copy) {
  std::int64_t bits = copy.codes.numel() * copy.spec.format.bits() + 8 * copy.scale_inv.nbytes();
  // The scale of per-tensor schemes replaces their amax, nvfp4 needs both.
  if (copy.spec.rule == formats::ScaleRule::nvfp4) bits += 8 * copy.amax.nbytes();
  return static_cast<double>(bits);
}

}  // namespace

Inspection inspect_copies(const Tensor& x, const std::string& description,
                          const QuantizedCopies& copies) {
  const bool transposed = describes_transpose(copies.scheme);
  const QuantizedMatrix& copy = transposed ? copies.columnwise : copies.rowwise;
  const Tensor source = transposed ? x.transpose(-2, -1) : x;
  Inspection inspection;
  inspection.scheme = copies.scheme;
  inspection.description = description;
  inspection.spec = copy.spec;
  inspection.shape = source.shape();
  inspection.dtype = x.dtype();
  inspection.stats = ops::quantization_stats(source, copy);
  if (!copy.spec.hadamard) {
    inspection.elements = element_errors(source, ops::dequantize(copy, DType::float32));
  }
  const auto numel = static_cast<double>(std::max<std::int64_t>(x.numel(), 1));
  inspection.bits_per_element = bits_of_copy(copy) / numel;
  count_scales(copy, inspection);
  return inspection;
}

report::SvgDocument error_picture(const Inspection& inspection) {
  if (!inspection.elements) {
    throw ValueError(fmt::format(
        "--svg: under scheme {} a Hadamard transform mixes the elements, so none has an error of "
        "its own; take the scheme without it, such as nvfp4_t",
        inspection.scheme));
  }
  report::LineSeries rms{"rms", {}, {}, 0, false, false};
  report::LineSeries largest{"largest", {}, {}, 1, false, false};
  for (const MagnitudeBin& bin : inspection.elements->bins) {
    rms.x.push_back(bin.magnitude);
    rms.y.push_back(bin.rms);
    largest.x.push_back(bin.magnitude);
    largest.y.push_back(bin.largest);
  }
  report::LineChart chart;
  chart.title = fmt::format("Error against magnitude, scheme {}", inspection.scheme);
  chart.description = fmt::format(
      "Relative error of the elements of {} ({} {}) by magnitude: the largest and the root mean "
      "square (rms) of each quarter of an octave.",
      inspection.description, to_string(inspection.shape), to_string(inspection.dtype));
  chart.id = "error";
  chart.x = {"magnitude |x|", true};
  chart.y = {"relative error |x − x̂| / |x|", true};
  chart.series = {largest, rms};
  return report::line_chart(chart);
}

}  // namespace kitchen::analysis
