#pragma once

#include "kitchen/ops/gemm.h"

#include "cuda/base/element_io.cuh"

#include <cstdint>

/// @file  gemm_operand.cuh
/// @brief D[m,n] = A[m,k]·B[n,k]ᵀ as every rung of the ladder sees it: strided operands, one
/// epilogue.

namespace kitchen::cuda {

/// [batch, rows, cols] of any strides.
struct GemmOperand {
  ConstElements data;
  std::int64_t strides[3];

  __device__ float at(std::int64_t batch, std::int64_t row, std::int64_t col) const {
    return load_element(data, batch * strides[0] + row * strides[1] + col * strides[2]);
  }
};

inline GemmOperand gemm_operand(const ConstView& x) {
  return {elements_of(x), {x.strides[0], x.strides[1], x.strides[2]}};
}

struct GemmSizes {
  std::int64_t batch, m, n, k;
};

/// Where a sum goes: · alpha, + bias, + what was there, one rounding (ops/gemm.h).
struct GemmResult {
  Elements d;
  std::int64_t strides[3];
  ConstElements bias;  ///< data is null without one
  std::int64_t bias_stride;
  float alpha;
  bool accumulate;

  __device__ void put(std::int64_t batch, std::int64_t row, std::int64_t col, float sum) const {
    const std::int64_t at = batch * strides[0] + row * strides[1] + col * strides[2];
    float value = sum * alpha;
    if (bias.data != nullptr) value += load_element(bias, col * bias_stride);
    if (accumulate) value += load_element({d.data, d.dtype}, at);
    store_element(d, at, value);
  }
};

inline GemmResult gemm_result(const View& d, const ops::GemmEpilogue& epilogue) {
  return {elements_of(d),
          {d.strides[0], d.strides[1], d.strides[2]},
          elements_of(epilogue.bias),
          epilogue.bias.strides[0],
          epilogue.alpha,
          epilogue.accumulate};
}

inline GemmSizes gemm_sizes(const ConstView& a, const View& d) {
  return {d.shape[0], d.shape[1], d.shape[2], a.shape[2]};
}

}  // namespace kitchen::cuda
