#pragma once

#include "kitchen/base/allocator.h"
#include "kitchen/base/rng.h"
#include "kitchen/base/tensor.h"
#include "kitchen/reference/cpu_backend.h"
#include "kitchen/reference/row_io.h"
#include "support/compare.h"

#include <omp.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

/// @file  test_tensors.h
/// @brief Inputs for the op tests: poisoned contexts, random numbers, tensors of any float dtype.

namespace kitchen::testing {

inline constexpr double kUnit32 = 0x1p-24;   // half an ulp of 1, the rounding unit of fp32
inline constexpr double kUnitBf16 = 0x1p-8;  // of bfloat16
inline constexpr double kUnitFp16 = 0x1p-11;

inline double unit_of(DType dtype) {
  if (dtype == DType::float32) return kUnit32;
  return dtype == DType::bfloat16 ? kUnitBf16 : kUnitFp16;
}

/// A CPU context whose fresh memory is NaN.
inline ContextPtr poisoned_context() {
  ContextPtr context = reference::make_cpu_context();
  context->allocator()->set_poison(true);
  return context;
}

/// Standard normal numbers of stream `stream`.
inline std::vector<double> normals(std::int64_t count, std::uint64_t stream) {
  std::vector<double> values(static_cast<std::size_t>(count));
  const Rng rng{2024, stream};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = normal_at(rng, i);
  return values;
}

/// `values` rounded to `dtype`. Use values_of to see what was stored.
inline Tensor tensor_of(const ContextPtr& context, Shape shape, const std::vector<double>& values,
                        DType dtype) {
  std::vector<float> row(values.begin(), values.end());
  const Tensor tensor = Tensor::empty(context, std::move(shape), dtype);
  reference::store_row(row.data(), tensor.raw_data(), dtype, 0, 1, tensor.numel());
  return tensor;
}

inline Tensor normal_tensor(const ContextPtr& context, Shape shape, DType dtype,
                            std::uint64_t stream) {
  const std::int64_t count = num_elements(shape);
  return tensor_of(context, std::move(shape), normals(count, stream), dtype);
}

/// Boolean tensor from flags.
inline Tensor mask_of(const ContextPtr& context, Shape shape, const std::vector<int>& flags) {
  const Tensor mask = Tensor::empty(context, std::move(shape), DType::boolean);
  auto* bytes = static_cast<std::uint8_t*>(mask.raw_data());
  for (std::size_t i = 0; i < flags.size(); ++i) bytes[i] = flags[i] != 0 ? 1 : 0;
  return mask;
}

/// Runs `body` with one thread and then with two, and restores the former number.
template <class Body>
void with_one_and_two_threads(Body&& body) {
  const int former = omp_get_max_threads();
  for (const int threads : {1, 2}) {
    omp_set_num_threads(threads);
    body(threads);
  }
  omp_set_num_threads(former);
}

inline const double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace kitchen::testing
