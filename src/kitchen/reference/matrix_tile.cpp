#include "kitchen/reference/matrix_tile.h"

#include "kitchen/formats/codec.h"
#include "kitchen/formats/hadamard.h"

#include <algorithm>
#include <cstring>

namespace kitchen::reference {

namespace {

struct Float32Reader {
  using Element = float;
  static float read(float x) { return x; }
};
struct Bfloat16Reader {
  using Element = std::uint16_t;
  static float read(std::uint16_t x) { return formats::bf16_to_float(x); }
};
struct Float16Reader {
  using Element = std::uint16_t;
  static float read(std::uint16_t x) { return formats::fp16_to_float(x); }
};

template <class Reader>
void read_row(const typename Reader::Element* __restrict from, float* __restrict to,
              std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = Reader::read(from[i]);
}

template <class Reader>
void load_rows(const ConstView& x, const MatrixTile& tile, float* out, std::int64_t pitch) {
  using Element = typename Reader::Element;
  const std::int64_t row_stride = x.strides[1];
  const std::int64_t col_stride = x.strides[2];
  const Element* base = static_cast<const Element*>(x.data) + tile.slice * x.strides[0] +
                        tile.row * row_stride + tile.col * col_stride;
  const std::int64_t cols = std::min(tile.cols, x.shape[2] - tile.col);
  if (col_stride == 1) {
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      read_row<Reader>(base + r * row_stride, out + r * pitch, cols);
    }
  } else {
    // Columns outside: a transposed matrix has its rows side by side in memory.
    for (std::int64_t c = 0; c < cols; ++c) {
      const Element* from = base + c * col_stride;
      for (std::int64_t r = 0; r < tile.rows; ++r) {
        out[r * pitch + c] = Reader::read(from[r * row_stride]);
      }
    }
  }
  for (std::int64_t r = 0; r < tile.rows && cols < tile.cols; ++r) {
    std::fill(out + r * pitch + cols, out + r * pitch + tile.cols, 0.0f);
  }
}

/// formats::encode, saturating, in fewer steps for vector units: above the smallest normal number a
/// code is the rounded upper bits, below it an fp32 addition rounds to the format's spacing.
template <class Format>
std::uint8_t encode_saturating(float x) {
  constexpr formats::FloatSpec kSpec = Format::spec();
  constexpr int kShift = 23 - kSpec.mantissa_bits;
  constexpr std::int32_t kBias = (127 - kSpec.bias) << 23;
  constexpr std::int32_t kHalf = (1 << (kShift - 1)) - 1;
  constexpr std::int32_t kSmallestNormal = (128 - kSpec.bias) << 23;
  constexpr std::int32_t kSpacing = (151 - kSpec.bias - kSpec.mantissa_bits) << 23;
  constexpr std::int32_t kLargest = (kSpec.max_code << kShift) + kBias;
  constexpr std::int32_t kNaN = kSpec.nan_code >= 0 ? kSpec.nan_code : kSpec.max_code;
  const auto bits = static_cast<std::int32_t>(bits_of(x));
  const std::int32_t magnitude = bits & 0x7FFFFFFF;
  const std::int32_t size = std::min(magnitude, kLargest);
  const std::int32_t normal = (size - kBias + kHalf + ((size >> kShift) & 1)) >> kShift;
  const float spaced = float_from_bits(static_cast<std::uint32_t>(size)) +
                       float_from_bits(static_cast<std::uint32_t>(kSpacing));
  const std::int32_t subnormal = static_cast<std::int32_t>(bits_of(spaced)) - kSpacing;
  const std::int32_t sign = (bits >> (32 - kSpec.bits())) & (1 << (kSpec.bits() - 1));
  const std::int32_t code = (size < kSmallestNormal ? subnormal : normal) | sign;
  const bool is_nan = magnitude > static_cast<std::int32_t>(formats::kFloatInfBits);
  return static_cast<std::uint8_t>(is_nan ? kNaN : code);
}

template <class Format>
void encode_values(const formats::FloatSpec& /*spec*/, const float* __restrict values, float scale,
                   std::uint8_t* __restrict codes, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) codes[i] = encode_saturating<Format>(values[i] * scale);
}

void encode_any(const formats::FloatSpec& spec, const float* __restrict values, float scale,
                std::uint8_t* __restrict codes, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    codes[i] = static_cast<std::uint8_t>(formats::encode(values[i] * scale, spec));
  }
}

template <class Format>
void decode_values(const formats::FloatSpec& /*spec*/, const std::uint8_t* __restrict codes,
                   float scale_inv, float* __restrict values, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    values[i] = formats::decode(codes[i], Format::spec()) * scale_inv;
  }
}

void decode_any(const formats::FloatSpec& spec, const std::uint8_t* __restrict codes,
                float scale_inv, float* __restrict values, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) values[i] = formats::decode(codes[i], spec) * scale_inv;
}

float round_to(DType dtype, float x) {
  if (dtype == DType::bfloat16) return formats::bf16_to_float(formats::float_to_bf16(x));
  if (dtype == DType::float16) return formats::fp16_to_float(formats::float_to_fp16(x));
  return x;
}

}  // namespace

void load_tile(const ConstView& x, const MatrixTile& tile, float* out, std::int64_t pitch) {
  if (x.dtype == DType::float32) return load_rows<Float32Reader>(x, tile, out, pitch);
  if (x.dtype == DType::bfloat16) return load_rows<Bfloat16Reader>(x, tile, out, pitch);
  load_rows<Float16Reader>(x, tile, out, pitch);
}

void hadamard16_rows(float* values, std::int64_t rows, std::int64_t cols, std::int64_t pitch,
                     DType dtype) {
  for (std::int64_t r = 0; r < rows; ++r) {
    float* row = values + r * pitch;
    for (std::int64_t c = 0; c < cols; c += 16) formats::hadamard16(row + c);
    if (dtype == DType::float32) continue;
    for (std::int64_t c = 0; c < cols; ++c) row[c] = round_to(dtype, row[c]);
  }
}

Amax amax_of(const float* values, std::int64_t n) {
  // Integer order of the absolute bits is the order of the values, with NaN above Inf.
  // Signed, since vector units compare signed integers.
  constexpr auto kInf = static_cast<std::int32_t>(formats::kFloatInfBits);
  std::int32_t largest = 0;
  std::int32_t largest_or_nan = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits = static_cast<std::int32_t>(bits_of(values[i]) & 0x7FFFFFFFu);
    const std::int32_t number = bits > kInf ? 0 : bits;
    largest = std::max(largest, number);
    largest_or_nan = std::max(largest_or_nan, bits);
  }
  return {float_from_bits(static_cast<std::uint32_t>(largest)), largest_or_nan > kInf};
}

float amax_of_halves(const std::uint16_t* values, std::int64_t n, DType dtype) {
  const std::int16_t inf = dtype == DType::bfloat16 ? 0x7F80 : 0x7C00;
  std::int16_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits = static_cast<std::int16_t>(values[i] & 0x7FFF);
    const std::int16_t number = bits > inf ? std::int16_t{0} : bits;
    largest = std::max(largest, number);
  }
  return load_element(&largest, dtype, 0);
}

EncodeRow row_encoder(const formats::FloatSpec& spec) {
  if (spec == formats::kE4M3) return &encode_values<formats::E4M3>;
  if (spec == formats::kE5M2) return &encode_values<formats::E5M2>;
  if (spec == formats::kE2M1) return &encode_values<formats::E2M1>;
  return &encode_any;
}

DecodeRow row_decoder(const formats::FloatSpec& spec) {
  if (spec == formats::kE4M3) return &decode_values<formats::E4M3>;
  if (spec == formats::kE5M2) return &decode_values<formats::E5M2>;
  if (spec == formats::kE2M1) return &decode_values<formats::E2M1>;
  return &decode_any;
}

void store_row(const float* values, DType dtype, void* data, std::int64_t offset, std::int64_t n) {
  if (dtype == DType::float32) {
    std::copy(values, values + n, static_cast<float*>(data) + offset);
    return;
  }
  std::uint16_t* __restrict to = static_cast<std::uint16_t*>(data) + offset;
  if (dtype == DType::bfloat16) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = formats::float_to_bf16(values[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = formats::float_to_fp16(values[i]);
  }
}

float load_element(const void* data, DType dtype, std::int64_t offset) {
  if (dtype == DType::float32) return static_cast<const float*>(data)[offset];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(data)[offset];
  return dtype == DType::bfloat16 ? formats::bf16_to_float(bits) : formats::fp16_to_float(bits);
}

}  // namespace kitchen::reference
