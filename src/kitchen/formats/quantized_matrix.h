#pragma once

#include "kitchen/base/tensor.h"
#include "kitchen/formats/quantize_spec.h"

namespace kitchen {

/// One quantized copy of a matrix, or of a batch of matrices ("slices"), row-major, ready for a
/// product that reduces along the last dimension.
///
/// The copy for the other direction is another QuantizedMatrix, made from the transposed matrix.
struct QuantizedMatrix {
  Tensor codes;  ///< [slices..., rows, cols], one code a byte, contiguous, code_dtype(spec.format)
  Tensor scale_inv;  ///< [slices..., ceil(rows/br), ceil(cols/bc)], contiguous, scale_dtype(spec)
  Tensor amax;  ///< [slices] float32 of per-tensor scaling and nvfp4 (rank 2: [1]), else undefined
  QuantizeSpec spec;

  [[nodiscard]] bool defined() const { return codes.defined(); }
  /// Bytes of codes, scales and amax as held in memory.
  [[nodiscard]] std::int64_t nbytes() const;
};

/// Number of matrices in `shape`: the product of all but the last two sizes.
std::int64_t num_slices(const Shape& shape);

/// Shape of the codes of a matrix of `shape`: the same, but a Hadamard transform pads cols to 16.
Shape code_shape(const QuantizeSpec& spec, const Shape& shape);

/// Shape of the scales for codes of `shape`. An empty matrix has one scale a whole extent, none a
/// block.
Shape scale_shape(const QuantizeSpec& spec, const Shape& shape);

}  // namespace kitchen
