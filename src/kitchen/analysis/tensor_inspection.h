#pragma once

#include "kitchen/analysis/quantized_copies.h"
#include "kitchen/ops/quantize.h"
#include "kitchen/report/svg.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kitchen::analysis {

/// Relative error |x - x̂| / |x| of the elements whose |x| is in one quarter of an octave.
struct MagnitudeBin {
  double magnitude = 0.0;  ///< middle of the quarter, on a logarithmic axis
  std::int64_t count = 0;
  double rms = 0.0;
  double largest = 0.0;
};

/// Errors element by element, over the finite elements.
struct ElementErrors {
  double max_error = 0.0;          ///< largest |x - x̂|
  double mean_error = 0.0;         ///< mean |x - x̂|
  std::vector<MagnitudeBin> bins;  ///< ascending; without those that are empty, and without x = 0
};

/// What quantization under one scheme did to a matrix.
struct Inspection {
  std::string scheme;
  std::string description;  ///< of the matrix
  QuantizeSpec spec;
  Shape shape;
  DType dtype = DType::float32;
  ops::QuantizationStats stats;
  /// Nothing under a Hadamard transform: its codes stand for mixed elements.
  std::optional<ElementErrors> elements;
  double bits_per_element = 0.0;  ///< codes and scales
  std::int64_t num_scales = 0;
  std::int64_t num_special_scales = 0;  ///< zero, infinite or NaN
  /// Number of stored scale_inv in [2^octave, 2^(octave+1)); the tensor's factor of nvfp4 included.
  std::map<int, std::int64_t> scale_octaves;
};

/// Measures that copy of `copies` which the scheme's name describes.
/// @param x the matrix [..., rows, cols] that `copies` was made of.
Inspection inspect_copies(const Tensor& x, const std::string& description,
                          const QuantizedCopies& copies);

std::string to_text(const Inspection& inspection);
/// The same figures; null where SQNR is not finite or a figure does not exist.
std::string to_json(const Inspection& inspection);

/// The picture of relative error against magnitude.
/// @throws ValueError where the inspection has no errors by element.
report::SvgDocument error_picture(const Inspection& inspection);

/// One line a scheme: name, format, block, rule.
std::string list_schemes();

}  // namespace kitchen::analysis
