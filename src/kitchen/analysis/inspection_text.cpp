#include "kitchen/analysis/tensor_inspection.h"
#include "kitchen/analysis/text_table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

/// @file  inspection_text.cpp
/// @brief An Inspection as text and as JSON.

namespace kitchen::analysis {

namespace {

constexpr std::int64_t kLongestBar = 40;

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

std::string share_line(const char* name, std::int64_t part, std::int64_t whole) {
  return fmt::format("{:<14}{:.4f} % ({} of {})\n", name, 100.0 * share(part, whole), part, whole);
}

std::string histogram(const Inspection& inspection) {
  std::string text = fmt::format("scales        {} of {}\n", inspection.num_scales,
                                 to_string(inspection.spec.granularity));
  std::int64_t most = inspection.num_special_scales;
  for (const auto& [octave, count] : inspection.scale_octaves) most = std::max(most, count);
  const auto line = [&](const std::string& label, std::int64_t count) {
    // Rounded up, so that a single scale among thousands is still seen.
    const std::int64_t length = (count * kLongestBar + most - 1) / most;
    text += fmt::format("  {:<12}{:<{}} {}\n", label,
                        std::string(static_cast<std::size_t>(length), '#'), kLongestBar, count);
  };
  std::optional<int> before;
  for (const auto& [octave, count] : inspection.scale_octaves) {
    if (before && octave > *before + 1) text += "  ...\n";
    line(fmt::format("2^{}", octave), count);
    before = octave;
  }
  if (inspection.num_special_scales > 0) line("0, inf, NaN", inspection.num_special_scales);
  return text;
}

nlohmann::ordered_json finite_or_null(double value) {
  if (std::isfinite(value)) return value;
  return nullptr;
}

}  // namespace

std::string to_text(const Inspection& inspection) {
  const ops::QuantizationStats& stats = inspection.stats;
  std::string text = fmt::format("input         {}: {} {}\n", inspection.description,
                                 to_string(inspection.shape), to_string(inspection.dtype));
  text += fmt::format("scheme        {}: {}\n", inspection.scheme, to_string(inspection.spec));
  text += fmt::format("storage       {:.4g} bits an element with scales\n",
                      inspection.bits_per_element);
  const double sqnr = stats.snr_db();
  text += stats.noise_power == 0.0 ? std::string("SQNR          no error\n")
                                   : fmt::format("SQNR          {:.2f} dB\n", sqnr);
  if (inspection.elements) {
    text += fmt::format("max error     {:.6g}\nmean error    {:.6g}\n",
                        inspection.elements->max_error, inspection.elements->mean_error);
  } else {
    text += "max error     - (a Hadamard transform mixes the elements)\n";
  }
  text += share_line("saturated", stats.num_saturated, stats.num_elements);
  text += share_line("underflowed", stats.num_underflowed, stats.num_elements);
  text += share_line("non-finite", stats.num_non_finite, stats.num_elements);
  return text + histogram(inspection);
}

std::string to_json(const Inspection& inspection) {
  const ops::QuantizationStats& stats = inspection.stats;
  nlohmann::ordered_json root;
  root["input"] = inspection.description;
  root["shape"] = inspection.shape;
  root["dtype"] = to_string(inspection.dtype);
  root["scheme"] = inspection.scheme;
  root["bits_per_element"] = inspection.bits_per_element;
  root["sqnr_db"] = finite_or_null(stats.snr_db());
  root["max_error"] = nullptr;
  root["mean_error"] = nullptr;
  if (inspection.elements) {
    root["max_error"] = inspection.elements->max_error;
    root["mean_error"] = inspection.elements->mean_error;
  }
  root["elements"] = stats.num_elements;
  root["saturated"] = share(stats.num_saturated, stats.num_elements);
  root["underflowed"] = share(stats.num_underflowed, stats.num_elements);
  root["non_finite"] = share(stats.num_non_finite, stats.num_elements);
  root["scales"]["count"] = inspection.num_scales;
  root["scales"]["zero_inf_nan"] = inspection.num_special_scales;
  root["scales"]["by_octave"] = nlohmann::ordered_json::object();
  for (const auto& [octave, count] : inspection.scale_octaves) {
    root["scales"]["by_octave"][std::to_string(octave)] = count;
  }
  return root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string list_schemes() {
  std::vector<std::vector<std::string>> rows{{"scheme", "format", "block", "scale", "notes"}};
  for (const std::string& name : quantize_scheme_names()) {
    const QuantizeSpec spec = quantize_spec_from_scheme_name(name);
    std::string notes = describes_transpose(name) ? "of the transposed matrix" : "";
    if (spec.stochastic) notes += notes.empty() ? "stochastic" : ", stochastic";
    if (spec.hadamard) notes += ", after a Hadamard transform";
    rows.push_back(
        {name, spec.format.name, to_string(spec.granularity), to_string(spec.rule), notes});
  }
  return format_table(rows);
}

}  // namespace kitchen::analysis
