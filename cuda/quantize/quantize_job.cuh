#pragma once

#include "kitchen/formats/hadamard.h"
#include "kitchen/ops/quantize.h"

#include "cuda/base/element_io.cuh"

#include <cstdint>

/// @file  quantize_job.cuh
/// @brief What the quantize kernels share: the matrix as they see it, a segment of 16 columns, the
/// formats.

namespace kitchen::cuda {

inline constexpr int kSegment = 16;  ///< columns that one thread holds: a Hadamard group, 16 codes

/// A matrix [slices, rows, cols] of any strides; `cols` counts up to the padding of a Hadamard
/// transform.
struct MatrixSource {
  ConstElements x;
  std::int64_t strides[3];
  std::int64_t slices, rows, cols;
  std::int64_t readable_cols;  ///< columns beyond read as 0
  bool hadamard;
  bool has_packs;  ///< every 16th column of a row lies on 16 bytes, its neighbours beside it

  /// Neighbouring rows, not columns, are neighbours in memory.
  [[nodiscard]] KITCHEN_HOST_DEVICE bool is_transposed() const { return strides[2] != 1; }
};

inline MatrixSource matrix_source(const ConstView& x, std::int64_t cols, bool hadamard) {
  const bool has_packs = x.strides[2] == 1 && x.strides[0] % kPack == 0 &&
                         x.strides[1] % kPack == 0 && is_aligned16(x.data);
  return {elements_of(x), {x.strides[0], x.strides[1], x.strides[2]},
          x.shape[0],     x.shape[1],
          cols,           x.shape[2],
          hadamard,       has_packs};
}

/// fp32 values of `count` <= kSegment columns from `col` on; the transform wants all 16.
__device__ inline void load_segment(const MatrixSource& m, std::int64_t slice, std::int64_t row,
                                    std::int64_t col, int count, float (&v)[kSegment]) {
  const std::int64_t at = slice * m.strides[0] + row * m.strides[1] + col * m.strides[2];
  if (m.has_packs && col % kPack == 0 && count == kSegment && col + kSegment <= m.readable_cols) {
    float low[kPack];
    float high[kPack];
    load_pack(m.x, at, low);
    load_pack(m.x, at + kPack, high);
#pragma unroll
    for (int i = 0; i < kPack; ++i) v[i] = low[i], v[i + kPack] = high[i];
  } else {
#pragma unroll
    for (int i = 0; i < kSegment; ++i) {
      const bool is_there = i < count && col + i < m.readable_cols;
      v[i] = is_there ? load_element(m.x, at + i * m.strides[2]) : 0.0f;
    }
  }
  if (!m.hadamard) return;
  formats::hadamard16(v);
#pragma unroll
  for (int i = 0; i < kSegment; ++i) v[i] = round_to(m.x.dtype, v[i]);
}

/// Bits of the largest |x| among numbers, and among numbers and NaN: integer order is the order of
/// values.
struct AmaxBits {
  unsigned number = 0;
  unsigned any = 0;

  __device__ void add(float value) {
    const unsigned bits = bits_of(value) & 0x7FFFFFFFu;
    number = max(number, bits > formats::kFloatInfBits ? 0u : bits);
    any = max(any, bits);
  }
  __device__ void merge(const AmaxBits& other) {
    number = max(number, other.number);
    any = max(any, other.any);
  }
  [[nodiscard]] __device__ float value() const { return float_from_bits(number); }
  [[nodiscard]] __device__ bool has_nan() const { return any > formats::kFloatInfBits; }
};

/// The largest over `width` neighbouring lanes, a power of two; valid in all of them.
__device__ inline AmaxBits reduce_lanes(AmaxBits amax, int width) {
  for (int step = width / 2; step > 0; step /= 2) {
    AmaxBits other;
    other.number = __shfl_xor_sync(0xFFFFFFFFu, amax.number, step);
    other.any = __shfl_xor_sync(0xFFFFFFFFu, amax.any, step);
    amax.merge(other);
  }
  return amax;
}

/// A format that is known when the kernel is compiled: its numbers fold away.
template <class Format>
struct FixedFormat {
  __device__ static formats::FloatSpec spec() { return Format::spec(); }
};

/// Any format, its numbers read at run time.
struct AnyFormat {
  formats::FloatSpec values;
  [[nodiscard]] __device__ formats::FloatSpec spec() const { return values; }
};

/// Calls `body` with the type above that fits.
template <class Body>
void with_format(const formats::FloatSpec& format, Body&& body) {
  if (format == formats::kE4M3) return body(FixedFormat<formats::E4M3>{});
  if (format == formats::kE5M2) return body(FixedFormat<formats::E5M2>{});
  if (format == formats::kE2M1) return body(FixedFormat<formats::E2M1>{});
  body(AnyFormat{format});
}

}  // namespace kitchen::cuda
