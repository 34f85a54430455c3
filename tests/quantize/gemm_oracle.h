#pragma once

#include "kitchen/formats/codec.h"
#include "kitchen/ops/quantized_gemm.h"
#include "kitchen/reference/cpu_backend.h"
#include "support/compare.h"
#include "support/golden_file.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// @file  gemm_oracle.h
/// @brief fp64 products of quantized matrices, by indices of their own.

namespace kitchen::testing {

inline const std::vector<std::string> kVariants{"fast", "ref32", "ref64"};

inline ContextPtr poisoned_context() {
  auto allocator = std::make_shared<HostAllocator>();
  allocator->set_poison(true);
  return std::make_shared<Context>(Device::cpu(), reference::cpu_backend(), allocator);
}

inline Tensor random_matrix(const ContextPtr& context, const Shape& shape, std::uint32_t id) {
  const std::int64_t cols = shape.back();
  const std::int64_t rows = cols == 0 ? 0 : num_elements(shape) / cols;
  return bf16_tensor(context, shape, generate_values(rows, cols, 17, id, "wide"));
}

inline QuantizedMatrix quantize_as(const Tensor& x, const std::string& scheme) {
  return ops::quantize(x, quantize_spec_from_scheme_name(scheme));
}

/// Dequantized values in fp64 by indices of its own: code value times the scale of the element's
/// block.
inline std::vector<double> exact_values(const QuantizedMatrix& q) {
  const std::int64_t rows = q.codes.dim(-2);
  const std::int64_t cols = q.codes.dim(-1);
  const std::vector<std::uint8_t> codes = q.codes.to_vector<std::uint8_t>();
  const bool is_nvfp4 = q.spec.rule == formats::ScaleRule::nvfp4;
  const auto block = q.spec.granularity;
  std::vector<double> values;
  for (std::int64_t i = 0; i < q.codes.numel(); ++i) {
    const std::int64_t slice = i / (rows * cols);
    const std::int64_t row = i / cols % rows;
    const std::int64_t col = i % cols;
    const std::int64_t sr = is_nvfp4 ? row : block.rows == 0 ? 0 : row / block.rows;
    const std::int64_t sc = block.cols == 0 ? 0 : col / block.cols;
    const std::int64_t at = (slice * q.scale_inv.dim(-2) + sr) * q.scale_inv.dim(-1) + sc;
    double scale = 0.0;
    if (is_nvfp4) {
      const float code = formats::decode(q.scale_inv.data<std::uint8_t>()[at], formats::kE4M3);
      scale = static_cast<double>(code) * static_cast<double>(q.amax.data<float>()[slice]) / 2688.0;
    } else if (q.scale_inv.dtype() == DType::float8_e8m0) {
      scale = std::ldexp(1.0, q.scale_inv.data<std::uint8_t>()[at] - 127);
    } else {
      scale = q.scale_inv.data<float>()[at];
    }
    const auto code = codes[static_cast<std::size_t>(i)];
    values.push_back(scale * static_cast<double>(formats::decode(code, q.spec.format)));
  }
  return values;
}

struct Expected {
  std::vector<double> values;
  std::vector<double> sizes;  ///< Σ|a||b|
};

inline Expected multiply(const QuantizedMatrix& a, const QuantizedMatrix& b) {
  const std::int64_t m = a.codes.dim(-2);
  const std::int64_t n = b.codes.dim(-2);
  const std::int64_t k = a.codes.dim(-1);
  const std::int64_t slices = num_slices(a.codes.shape());
  const std::vector<double> x = exact_values(a);
  const std::vector<double> y = exact_values(b);
  Expected expected;
  for (std::int64_t s = 0; s < slices; ++s) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0.0;
        double size = 0.0;
        for (std::int64_t l = 0; l < k; ++l) {
          const double p = x[static_cast<std::size_t>((s * m + i) * k + l)] *
                           y[static_cast<std::size_t>((s * n + j) * k + l)];
          sum += p;
          size += std::fabs(p);
        }
        expected.values.push_back(sum);
        expected.sizes.push_back(size);
      }
    }
  }
  return expected;
}

/// fp32 sums: k roundings of the sum, and at most 8 of decoded operands, their product, scales and
/// bias.
inline void expect_near(const Expected& expected, const Tensor& actual, std::int64_t k,
                        double extra = 0.0) {
  const std::vector<double> values = values_of(actual);
  ASSERT_EQ(values.size(), expected.values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double bound = static_cast<double>(k + 8) * 0x1p-24 * (expected.sizes[i] + extra);
    ASSERT_TRUE(std::fabs(values[i] - expected.values[i]) <= bound)
        << "element " << i << ": " << values[i] << ", expected " << expected.values[i];
  }
}

}  // namespace kitchen::testing
