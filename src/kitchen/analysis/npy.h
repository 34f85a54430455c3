#pragma once

#include "kitchen/base/tensor.h"

#include <optional>
#include <string>

namespace kitchen::analysis {

/// The dtype behind "fp32", "fp16" or "bf16".
/// @throws ValueError naming the flag and the text.
DType input_dtype_from_string(const std::string& text);

/// Reads one array of a .npy file (header versions 1, 2 and 3) into `context`.
///
/// Elements are `<f4` (float32), `<f2` (float16), or, where `dtype` is bfloat16, `<u2` and `V2`:
/// the bits of bfloat16, for which the format has no name of its own.
/// @param dtype what the caller expects; nothing: what the file says.
/// @returns the array in its shape; row-major.
/// @throws ValueError naming the file, what was found and how to save it instead: other dtypes, big
/// endian, Fortran order, no .npy file, more or fewer bytes than the header says; IOError if it
/// cannot be read.
/// @source NumPy Enhancement Proposal 1, "A simple file format for NumPy arrays".
Tensor read_npy(const std::string& path, const std::optional<DType>& dtype,
                const ContextPtr& context);

}  // namespace kitchen::analysis
