#include "kitchen/reference/norm.h"

#include "kitchen/ops/norm.h"
#include "kitchen/reference/lane_sum.h"
#include "kitchen/reference/row_io.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kitchen::reference {

namespace {

constexpr std::int64_t kRowsPerChunk = 128;
constexpr std::int64_t kParallelElements = 16384;

/// gamma, or 1 + gamma when it is zero-centred, in fp32.
std::vector<float> gains(const ConstView& gamma, const ops::NormOptions& options) {
  std::vector<float> gain(static_cast<std::size_t>(gamma.shape[0]));
  load_row(gamma.data, gamma.dtype, 0, 1, gamma.shape[0], gain.data());
  if (options.zero_centered_gamma) {
    for (float& value : gain) value = 1.0f + value;
  }
  return gain;
}

struct RowStatistics {
  float mean = 0.0f;
  float rstd = 0.0f;
};

RowStatistics statistics_of(const float* x, std::int64_t cols, const ops::NormOptions& options) {
  RowStatistics row;
  const float count = static_cast<float>(cols);
  if (options.kind == ops::NormKind::layer_norm) {
    row.mean = lane_sum(cols, [x](std::int64_t c) { return x[c]; }) / count;
  }
  const float mean = row.mean;
  const float squares = lane_sum(cols, [x, mean](std::int64_t c) {
    const float centred = x[c] - mean;
    return centred * centred;
  });
  row.rstd = 1.0f / std::sqrt(squares / count + options.eps);
  return row;
}

void normalize_row(float* x, std::int64_t cols, const RowStatistics& row, const float* gain,
                   const float* shift) {
  if (shift == nullptr) {
    for (std::int64_t c = 0; c < cols; ++c) x[c] = (x[c] - row.mean) * row.rstd * gain[c];
  } else {
    for (std::int64_t c = 0; c < cols; ++c) {
      x[c] = (x[c] - row.mean) * row.rstd * gain[c] + shift[c];
    }
  }
}

void norm_forward(const Stream& /*stream*/, ConstView x, ConstView gamma, ConstView beta, View y,
                  View mean, View rstd, const ops::NormOptions& options) {
  const std::int64_t rows = x.shape[0];
  const std::int64_t cols = x.shape[1];
  const std::vector<float> gain = gains(gamma, options);
  std::vector<float> shift;
  if (beta.defined()) {
    shift.resize(static_cast<std::size_t>(cols));
    load_row(beta.data, beta.dtype, 0, 1, cols, shift.data());
  }
  auto* means = static_cast<float*>(mean.data);
  auto* rstds = static_cast<float*>(rstd.data);
#pragma omp parallel if (rows * cols > kParallelElements)
  {
    std::vector<float> values(static_cast<std::size_t>(cols));
#pragma omp for schedule(static)
    for (std::int64_t r = 0; r < rows; ++r) {
      load_row(x, r, values.data());
      const RowStatistics row = statistics_of(values.data(), cols, options);
      if (mean.defined()) means[r] = row.mean;
      rstds[r] = row.rstd;
      normalize_row(values.data(), cols, row, gain.data(), shift.empty() ? nullptr : shift.data());
      store_row(values.data(), y, r);
    }
  }
}

/// Buffers of one thread and the sums of one chunk of rows.
struct BackwardRow {
  explicit BackwardRow(std::int64_t cols)
      : dy(static_cast<std::size_t>(cols)), normalized(static_cast<std::size_t>(cols)) {}
  std::vector<float> dy;          // (cols)
  std::vector<float> normalized;  // (cols): first x, then x̂
};

/// dx of one row into `row.dy`; adds the row to the chunk's sums.
void backward_row(BackwardRow& row, std::int64_t cols, const RowStatistics& statistics,
                  const float* gain, bool is_layer_norm, float* gamma_sums, float* beta_sums) {
  float* dy = row.dy.data();
  float* xhat = row.normalized.data();
  // Five rows, none of which overlap: without the pragma the compiler gives up on proving it.
#pragma omp simd
  for (std::int64_t c = 0; c < cols; ++c) {
    xhat[c] = (xhat[c] - statistics.mean) * statistics.rstd;
    gamma_sums[c] += dy[c] * xhat[c];
    beta_sums[c] += dy[c];
    dy[c] *= gain[c];
  }
  const float count = static_cast<float>(cols);
  const float slope = lane_sum(cols, [=](std::int64_t c) { return dy[c] * xhat[c]; }) / count;
  const float offset =
      is_layer_norm ? lane_sum(cols, [=](std::int64_t c) { return dy[c]; }) / count : 0.0f;
  for (std::int64_t c = 0; c < cols; ++c) {
    dy[c] = (dy[c] - (xhat[c] * slope + offset)) * statistics.rstd;
  }
}

/// Adds the chunk sums in ascending order.
void reduce_chunks(const float* sums, std::int64_t num_chunks, std::int64_t cols, float* out) {
  std::fill(out, out + cols, 0.0f);
  for (std::int64_t chunk = 0; chunk < num_chunks; ++chunk) {
    for (std::int64_t c = 0; c < cols; ++c) out[c] += sums[chunk * cols + c];
  }
}

void norm_backward(const Stream& /*stream*/, ConstView dy, ConstView x, ConstView gamma,
                   ConstView mean, ConstView rstd, View dx, View dgamma, View dbeta,
                   void* workspace, const ops::NormOptions& options) {
  const std::int64_t rows = x.shape[0];
  const std::int64_t cols = x.shape[1];
  const std::int64_t num_chunks = (rows + kRowsPerChunk - 1) / kRowsPerChunk;
  const bool is_layer_norm = options.kind == ops::NormKind::layer_norm;
  const std::vector<float> gain = gains(gamma, options);
  const auto* means = static_cast<const float*>(mean.data);
  const auto* rstds = static_cast<const float*>(rstd.data);
  auto* gamma_sums = static_cast<float*>(workspace);  // (num_chunks, cols)
  float* beta_sums = gamma_sums + num_chunks * cols;  // (num_chunks, cols)
#pragma omp parallel if (rows * cols > kParallelElements)
  {
    BackwardRow row(cols);
#pragma omp for schedule(static)
    for (std::int64_t chunk = 0; chunk < num_chunks; ++chunk) {
      float* gamma_sum = gamma_sums + chunk * cols;
      float* beta_sum = beta_sums + chunk * cols;
      std::fill(gamma_sum, gamma_sum + cols, 0.0f);
      std::fill(beta_sum, beta_sum + cols, 0.0f);
      const std::int64_t end = std::min(rows, (chunk + 1) * kRowsPerChunk);
      for (std::int64_t r = chunk * kRowsPerChunk; r < end; ++r) {
        load_row(dy, r, row.dy.data());
        load_row(x, r, row.normalized.data());
        const RowStatistics statistics{is_layer_norm ? means[r] : 0.0f, rstds[r]};
        backward_row(row, cols, statistics, gain.data(), is_layer_norm, gamma_sum, beta_sum);
        store_row(row.dy.data(), dx, r);
      }
    }
  }
  reduce_chunks(gamma_sums, num_chunks, cols, static_cast<float*>(dgamma.data));
  if (dbeta.defined()) {
    reduce_chunks(beta_sums, num_chunks, cols, static_cast<float*>(dbeta.data));
  }
}

}  // namespace

void register_norm_kernels(Backend& backend) {
  backend.add<ops::NormForwardKernel>("exact", &norm_forward);
  backend.add<ops::NormBackwardKernel>("exact", &norm_backward);
}

}  // namespace kitchen::reference
