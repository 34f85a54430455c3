#include "kitchen/formats/codec.h"
#include "kitchen/reference/matrix_tile.h"
#include "kitchen/reference/quantize.h"
#include "kitchen/reference/quantized_gemm.h"

#include <algorithm>
#include <cmath>

namespace kitchen::reference {

namespace {

/// Access to the elements of one slice of an operand, with the scale of a place as numerics.md S5.1
/// wants it.
class Operand {
 public:
  Operand(const ops::QuantizedView& x, std::int64_t slice)
      : x_(x), slice_(slice), rows_(x.codes.shape[1]), cols_(x.codes.shape[2]) {
    block_rows_ = extent(x.spec.stored_scale_rows(), rows_);
    block_cols_ = extent(x.spec.granularity.cols, cols_);
    codes_ = static_cast<const std::uint8_t*>(x.codes.data) + slice * rows_ * cols_;
  }

  [[nodiscard]] float code_value(std::int64_t row, std::int64_t k) const {
    return formats::decode(codes_[row * cols_ + k], x_.spec.format);
  }
  [[nodiscard]] float scale(std::int64_t row, std::int64_t k) const {
    return stored_scale(x_, slice_, row / block_rows_, k / block_cols_);
  }
  /// As scale, with the global part of NVFP4: the factor that dequantize uses.
  [[nodiscard]] float full_scale(std::int64_t row, std::int64_t k) const {
    const float stored = scale(row, k);
    if (x_.spec.rule != formats::ScaleRule::nvfp4) return stored;
    return (stored * static_cast<const float*>(x_.amax.data)[slice_]) * (1.0f / 2688.0f);
  }
  [[nodiscard]] std::int64_t block_of_reduction() const { return x_.spec.granularity.cols; }

 private:
  static std::int64_t extent(std::int64_t block, std::int64_t size) {
    return block == 0 ? std::max<std::int64_t>(size, 1) : block;
  }

  const ops::QuantizedView& x_;
  std::int64_t slice_;
  std::int64_t rows_;
  std::int64_t cols_;
  std::int64_t block_rows_ = 1;
  std::int64_t block_cols_ = 1;
  const std::uint8_t* codes_ = nullptr;
};

/// Length of a partial sum: the shorter block of the two operands, 128 where scales do not change
/// along k.
std::int64_t reduction_block(const Operand& a, const Operand& b) {
  const std::int64_t x = a.block_of_reduction();
  const std::int64_t y = b.block_of_reduction();
  if (x == 0 && y == 0) return 128;
  if (x == 0 || y == 0) return std::max(x, y);
  return std::min(x, y);
}

float partial_sum(const Operand& a, const Operand& b, std::int64_t i, std::int64_t j,
                  std::int64_t k0, std::int64_t k1) {
  float sum = 0.0f;
  for (std::int64_t k = k0; k < k1; ++k) sum += a.code_value(i, k) * b.code_value(j, k);
  return sum;
}

/// The sum of integer codes, which int32 accumulation holds exactly, rounded once (S3.8).
float integer_sum(const Operand& a, const Operand& b, std::int64_t i, std::int64_t j,
                  std::int64_t size) {
  std::int64_t sum = 0;
  for (std::int64_t k = 0; k < size; ++k) {
    sum += static_cast<std::int64_t>(a.code_value(i, k) * b.code_value(j, k));
  }
  return static_cast<float>(sum);
}

/// The fp32 sum of one output element with all scales but alpha.
float ref32_element(const ops::QuantizedView& a_view, const ops::QuantizedView& b_view,
                    std::int64_t slice, std::int64_t i, std::int64_t j) {
  const Operand a(a_view, slice);
  const Operand b(b_view, slice);
  const std::int64_t size = a_view.codes.shape[2];
  const std::int64_t block = reduction_block(a, b);
  const bool is_constant = a.block_of_reduction() == 0 && b.block_of_reduction() == 0;
  const bool is_nvfp4 = a_view.spec.rule == formats::ScaleRule::nvfp4 ||
                        b_view.spec.rule == formats::ScaleRule::nvfp4;
  const bool is_integer = a_view.spec.format.is_integer() && b_view.spec.format.is_integer();
  if (is_integer && is_constant && size > 0) {
    return integer_sum(a, b, i, j, size) * (a.scale(i, 0) * b.scale(j, 0));
  }
  float acc = 0.0f;
  for (std::int64_t k = 0; k < size; k += block) {
    const float p = partial_sum(a, b, i, j, k, std::min(size, k + block));
    if (is_constant) {
      acc += p;
      continue;
    }
    const float scale = a.scale(i, k) * b.scale(j, k);
    acc = is_nvfp4 ? acc + scale * p : fmaf(p, scale, acc);
  }
  if (is_constant && size > 0) acc *= a.scale(i, 0) * b.scale(j, 0);
  return acc;
}

double ref64_element(const ops::QuantizedView& a_view, const ops::QuantizedView& b_view,
                     std::int64_t slice, std::int64_t i, std::int64_t j) {
  const Operand a(a_view, slice);
  const Operand b(b_view, slice);
  double sum = 0.0;
  for (std::int64_t k = 0; k < a_view.codes.shape[2]; ++k) {
    const double x =
        static_cast<double>(a.code_value(i, k)) * static_cast<double>(a.full_scale(i, k));
    const double y =
        static_cast<double>(b.code_value(j, k)) * static_cast<double>(b.full_scale(j, k));
    sum += x * y;
  }
  return sum;
}

/// fp32 by rounding to odd: a second rounding to bf16 or fp16 then gives what one rounding would.
float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  if (back == value || !std::isfinite(nearest)) return nearest;
  const std::uint32_t bits = bits_of(nearest);
  return float_from_bits((std::fabs(back) > std::fabs(value) ? bits - 1 : bits) | 1u);
}

float rounded_for(DType dtype, double value) {
  return dtype == DType::float32 ? static_cast<float>(value) : round_to_odd(value);
}
float rounded_for(DType /*dtype*/, float value) {
  return value;
}

/// Calls element(slice, i, j) for every output, adds bias and C in the element's type and stores
/// it.
template <class Element>
void for_each_output(const View& d, const ops::GemmEpilogue& epilogue, std::int64_t work,
                     const Element& element) {
  const std::int64_t rows = d.shape[0] * d.shape[1];
#pragma omp parallel for if (worth_threads(d.numel() * work))
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t slice = row / d.shape[1];
    const std::int64_t i = row % d.shape[1];
    for (std::int64_t j = 0; j < d.shape[2]; ++j) {
      const std::int64_t at = slice * d.strides[0] + i * d.strides[1] + j;
      auto value = element(slice, i, j);
      if (epilogue.bias.defined())
        value += load_element(epilogue.bias.data, epilogue.bias.dtype, j);
      if (epilogue.accumulate) value += load_element(d.data, d.dtype, at);
      const float rounded = rounded_for(d.dtype, value);
      store_row(&rounded, d.dtype, d.data, at, 1);
    }
  }
}

}  // namespace

void quantized_gemm_ref32(const Stream& /*stream*/, const ops::QuantizedView& a,
                          const ops::QuantizedView& b, View d, const ops::GemmEpilogue& epilogue,
                          void* /*workspace*/) {
  for_each_output(d, epilogue, a.codes.shape[2],
                  [&](std::int64_t slice, std::int64_t i, std::int64_t j) {
                    const float factor = epilogue.alpha * global_factor(a, b, slice);
                    return ref32_element(a, b, slice, i, j) * factor;
                  });
}

void quantized_gemm_ref64(const Stream& /*stream*/, const ops::QuantizedView& a,
                          const ops::QuantizedView& b, View d, const ops::GemmEpilogue& epilogue,
                          void* /*workspace*/) {
  for_each_output(d, epilogue, a.codes.shape[2],
                  [&](std::int64_t slice, std::int64_t i, std::int64_t j) {
                    return ref64_element(a, b, slice, i, j) * static_cast<double>(epilogue.alpha);
                  });
}

}  // namespace kitchen::reference
