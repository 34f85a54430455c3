#pragma once

#include "kitchen/base/tensor.h"

#include <cstdint>
#include <string>

namespace kitchen::analysis {

/// Where the numbers to look at come from: a file or a distribution, as the user said it.
struct InspectInput {
  std::string path;    ///< *.safetensors, else a .npy file
  std::string tensor;  ///< its name in a safetensors file
  std::string
      input_dtype;  ///< fp32, fp16, bf16; empty: what the file says, bf16 for a distribution
  std::string distribution;  ///< normal, uniform, lognormal, laplace or outliers
  std::int64_t rows = 256;
  std::int64_t cols = 1024;
  std::uint64_t seed = 0;
};

/// A matrix [..., rows, cols] and what it is, for people.
struct InspectedMatrix {
  Tensor values;
  std::string description;
};

/// Reads or makes the numbers. A vector becomes one row; leading dimensions stay slices.
///
/// normal: standard; uniform: in [-1, 1); lognormal: exp of normal; laplace: of scale 1; outliers:
/// normal, one in 256 times 64. All are drawn by Philox, so a seed gives the same numbers
/// everywhere.
/// @throws ValueError naming the flag or file; KeyError listing the tensors of a safetensors file.
InspectedMatrix read_input(const InspectInput& input, const ContextPtr& context);

}  // namespace kitchen::analysis
