#pragma once

#include "kitchen/base/tensor_view.h"
#include "kitchen/formats/quantize_spec.h"

namespace kitchen::reference {

/// Where one quantized copy goes: codes and scales of rank 3, contiguous; undefined where the copy
/// is not wanted.
struct CopyTarget {
  View codes;
  View scale_inv;

  [[nodiscard]] bool wanted() const { return codes.defined(); }
};

/// Whether quantize_tiles knows the spec and can read x [slices, rows, cols]: bfloat16 with
/// contiguous rows, blocks of 1x128 of E4M3 or E5M2.
bool fits_quantize_tiles(const ConstView& x, const QuantizeSpec& spec);

/// Quantizes x [slices, rows, cols] and its transpose, whichever is wanted, from one read.
///
/// A tile of 128x128 holds 128 whole blocks of each copy, and stays in the cache while amax, codes
/// and the transposition of the codes follow each other. The bytes are those of quantize.
void quantize_tiles(const ConstView& x, const CopyTarget& rowwise, const CopyTarget& columnwise,
                    const QuantizeSpec& spec);

}  // namespace kitchen::reference
