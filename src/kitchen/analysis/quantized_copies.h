#pragma once

#include "kitchen/formats/quantized_matrix.h"

#include <cstdint>
#include <string>

namespace kitchen::analysis {

/// Key and offset of the random stream of stochastic rounding (numerics.md S2.2), as they stand.
struct RoundingKey {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
};

/// The two quantized copies of a matrix under a scheme: of the matrix as it is (usage 0 of the
/// random stream) and of its transpose (usage 1).
///
/// The names nvfp4_t* describe the transposed copy; their rowwise copy is the same without the
/// Hadamard transform, which the columnwise copy alone has (S4).
struct QuantizedCopies {
  std::string scheme;
  QuantizedMatrix rowwise;
  QuantizedMatrix columnwise;
};

/// Whether the scheme's name describes the transposed matrix.
bool describes_transpose(const std::string& scheme);

/// @param x [..., rows, cols], float32, float16 or bfloat16.
/// @throws ValueError on an unknown scheme, with the nearest names, or an offset of 2^56 or more;
/// what quantize throws.
QuantizedCopies quantize_both(const Tensor& x, const std::string& scheme, const RoundingKey& key);

/// Writes rowwise_codes, rowwise_scale, columnwise_codes, columnwise_scale and, where the scheme
/// has one, amax to a safetensors file; logical layout, 4-bit codes packed in pairs as U8 (S1.3)
/// with their logical shape in the metadata. `amax` is that of the copy that the scheme's name
/// describes; rowwise_amax stands beside it where a Hadamard transform makes the two differ.
/// @throws ValueError if `path` exists and `may_overwrite` is false; IOError or RuntimeError if it
/// cannot be written, leaving no half file.
void dump_copies(const std::string& path, const QuantizedCopies& copies, const RoundingKey& key,
                 bool may_overwrite);

}  // namespace kitchen::analysis
