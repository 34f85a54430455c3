#include "kitchen/reference/gemm.h"
#include "kitchen/reference/parallel.h"
#include "kitchen/reference/row_io.h"

#include <cmath>

namespace kitchen::reference {

namespace {

constexpr std::int64_t kColumns = 64;  ///< output columns whose sums stay in registers and L1

/// The fp32 number from which every narrower rounding gives what rounding `value` itself would
/// give: truncated, with the last bit set where bits were lost (round to odd).
float to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  if (back == value || !std::isfinite(value)) return nearest;
  std::uint32_t bits = bits_of(nearest);
  if (std::fabs(back) > std::fabs(value)) --bits;
  return float_from_bits(bits | 1u);
}

void store_once(double value, const View& d, std::int64_t offset) {
  const float narrow = d.dtype == DType::float32 ? static_cast<float>(value) : to_odd(value);
  store_row(&narrow, d.data, d.dtype, offset, 1, 1);
}

/// Columns [n0, n0 + width) of one output row. `a` is the row [k], `b` is [k, n].
void exact_columns(const float* a, const float* b, std::int64_t k, std::int64_t n, std::int64_t n0,
                   std::int64_t width, double* sums) {
  std::fill_n(sums, kColumns, 0.0);
  for (std::int64_t i = 0; i < k; ++i) {
    const double factor = a[i];
    const float* row = b + i * n + n0;
    for (std::int64_t j = 0; j < width; ++j) sums[j] += factor * static_cast<double>(row[j]);
  }
}

void finish_columns(const double* sums, const View& d, std::int64_t base,
                    const ops::GemmEpilogue& epilogue, std::int64_t n0, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) {
    double value = sums[j] * static_cast<double>(epilogue.alpha);
    float term = 0.0f;
    if (epilogue.bias.defined()) {
      load_row(epilogue.bias.data, epilogue.bias.dtype, (n0 + j) * epilogue.bias.strides[0], 1, 1,
               &term);
      value += static_cast<double>(term);
    }
    const std::int64_t offset = base + (n0 + j) * d.strides[2];
    if (epilogue.accumulate) {
      load_row(d.data, d.dtype, offset, 1, 1, &term);
      value += static_cast<double>(term);
    }
    store_once(value, d, offset);
  }
}

}  // namespace

std::int64_t gemm_exact_workspace(const ConstView& a, const ConstView& b, const ConstView& /*d*/,
                                  const ops::GemmEpilogue& /*epilogue*/) {
  return (a.shape[1] + b.shape[1]) * a.shape[2] * static_cast<std::int64_t>(sizeof(float));
}

void gemm_exact(const Stream& /*stream*/, ConstView a, ConstView b, View d,
                const ops::GemmEpilogue& epilogue, void* workspace) {
  const std::int64_t m = d.shape[1];
  const std::int64_t n = d.shape[2];
  const std::int64_t k = a.shape[2];
  auto* a_wide = static_cast<float*>(workspace);  // [m, k]
  float* b_wide = a_wide + m * k;                 // [k, n]
  for (std::int64_t item = 0; item < d.shape[0]; ++item) {
    parallel_rows(m, k, [&](std::int64_t row) {
      load_row(a.data, a.dtype, item * a.strides[0] + row * a.strides[1], a.strides[2], k,
               a_wide + row * k);
    });
    parallel_rows(k, n, [&](std::int64_t row) {
      load_row(b.data, b.dtype, item * b.strides[0] + row * b.strides[2], b.strides[1], n,
               b_wide + row * n);
    });
    parallel_rows(m, n * std::max<std::int64_t>(k, 1), [&](std::int64_t row) {
      double sums[kColumns];
      const std::int64_t base = item * d.strides[0] + row * d.strides[1];
      for (std::int64_t n0 = 0; n0 < n; n0 += kColumns) {
        const std::int64_t width = std::min(kColumns, n - n0);
        exact_columns(a_wide + row * k, b_wide, k, n, n0, width, sums);
        finish_columns(sums, d, base, epilogue, n0, width);
      }
    });
  }
}

}  // namespace kitchen::reference
