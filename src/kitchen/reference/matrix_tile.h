#pragma once

#include "kitchen/base/tensor_view.h"
#include "kitchen/formats/float_spec.h"

#include <cstdint>

namespace kitchen::reference {

/// A rectangle of one slice of a matrix [slices, rows, cols].
struct MatrixTile {
  std::int64_t slice = 0;
  std::int64_t row = 0;
  std::int64_t col = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

/// Copies a tile of x (rank 3, any strides, high-precision dtype) into `out`, fp32 with `pitch`
/// floats a row. Columns from the matrix's edge on are filled with 0. A transposed matrix is read
/// along its memory.
void load_tile(const ConstView& x, const MatrixTile& tile, float* out, std::int64_t pitch);

/// Random Hadamard transform of each 16 consecutive columns of `rows` rows, in place (numerics.md
/// S4), rounded to `dtype` afterwards. `cols` is a multiple of 16.
void hadamard16_rows(float* values, std::int64_t rows, std::int64_t cols, std::int64_t pitch,
                     DType dtype);

/// The largest |x| of `n` values without the NaN, and whether there is one.
struct Amax {
  float value = 0.0f;
  bool has_nan = false;
};
Amax amax_of(const float* values, std::int64_t n);
/// The same value for elements of bfloat16 or float16, whose bits have the order of the values too.
float amax_of_halves(const std::uint16_t* values, std::int64_t n, DType dtype);

/// codes[i] = encode(values[i] · scale), saturating.
using EncodeRow = void (*)(const formats::FloatSpec& spec, const float* values, float scale,
                           std::uint8_t* codes, std::int64_t n);
/// The loop for a format: one with its numbers as constants where it is common, else one that reads
/// them.
EncodeRow row_encoder(const formats::FloatSpec& spec);

/// values[i] = decode(codes[i]) · scale_inv.
using DecodeRow = void (*)(const formats::FloatSpec& spec, const std::uint8_t* codes,
                           float scale_inv, float* values, std::int64_t n);
DecodeRow row_decoder(const formats::FloatSpec& spec);

/// Writes fp32 values to `data` + offset elements of a high-precision dtype, one rounding.
void store_row(const float* values, DType dtype, void* data, std::int64_t offset, std::int64_t n);

/// The element at `offset` of a high-precision buffer.
float load_element(const void* data, DType dtype, std::int64_t offset);

}  // namespace kitchen::reference
