#include "kitchen/reference/softmax.h"

#include "kitchen/ops/softmax.h"
#include "kitchen/reference/lane_sum.h"
#include "kitchen/reference/row_io.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kitchen::reference {

namespace {

constexpr std::int64_t kParallelElements = 16384;

/// Which row of [b, np, sq, sk] an index counts, and its masked positions.
class MaskRow {
 public:
  MaskRow(const ConstView& mask, const View& scores, bool causal, std::int64_t row)
      : cols_(scores.shape[3]) {
    const std::int64_t query = row % scores.shape[2];
    const std::int64_t head = row / scores.shape[2] % scores.shape[1];
    const std::int64_t batch = row / scores.shape[2] / scores.shape[1];
    visible_ = cols_;
    if (causal) visible_ = std::clamp<std::int64_t>(query + cols_ - scores.shape[2] + 1, 0, cols_);
    if (!mask.defined()) return;
    flags_ = static_cast<const std::uint8_t*>(mask.data) + batch * mask.strides[0] +
             head * mask.strides[1] + query * mask.strides[2];
    stride_ = mask.strides[3];
  }

  /// Overwrites the masked positions of `values` (cols).
  void fill(float* values, float value) const {
    std::fill(values + visible_, values + cols_, value);
    if (flags_ == nullptr) return;
    for (std::int64_t c = 0; c < visible_; ++c) {
      values[c] = flags_[c * stride_] != 0 ? value : values[c];
    }
  }

 private:
  std::int64_t cols_;
  std::int64_t visible_ = 0;  ///< columns from here on are causally masked
  const std::uint8_t* flags_ = nullptr;
  std::int64_t stride_ = 0;
};

/// Largest value; NaN is passed over, it shows in the sum.
float row_maximum(const float* values, std::int64_t count) {
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, -INFINITY);
  const std::int64_t whole = count - count % kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
    }
  }
  float maximum = -INFINITY;
  for (const float lane : lanes) maximum = lane > maximum ? lane : maximum;
  for (std::int64_t i = whole; i < count; ++i) maximum = values[i] > maximum ? values[i] : maximum;
  return maximum;
}

void softmax_row(float* values, std::int64_t count) {
  const float maximum = row_maximum(values, count);
  // Without a finite score, -inf - -inf would be NaN; shifting by 0 leaves exp(-inf) = 0.
  const float shift = maximum == -INFINITY ? 0.0f : maximum;
  for (std::int64_t c = 0; c < count; ++c) values[c] = exp_exact(values[c] - shift);
  const float sum = lane_sum(count, [values](std::int64_t c) { return values[c]; });
  const float divisor = sum == 0.0f ? 1.0f : sum;
  for (std::int64_t c = 0; c < count; ++c) values[c] /= divisor;
}

void softmax_forward(const Stream& /*stream*/, ConstView scores, ConstView mask, View probs,
                     const ops::SoftmaxOptions& options) {
  const std::int64_t cols = probs.shape[3];
  const std::int64_t rows = probs.shape[0] * probs.shape[1] * probs.shape[2];
#pragma omp parallel if (rows * cols > kParallelElements)
  {
    std::vector<float> values(static_cast<std::size_t>(cols));
#pragma omp for schedule(static)
    for (std::int64_t row = 0; row < rows; ++row) {
      load_row(scores.data, scores.dtype, row * cols, 1, cols, values.data());
      for (float& value : values) value *= options.scale;
      MaskRow(mask, probs, options.causal, row).fill(values.data(), options.masked_value);
      softmax_row(values.data(), cols);
      store_row(values.data(), probs.data, probs.dtype, row * cols, 1, cols);
    }
  }
}

void softmax_backward(const Stream& /*stream*/, ConstView dprobs, ConstView probs, ConstView mask,
                      View dscores, const ops::SoftmaxOptions& options) {
  const std::int64_t cols = dscores.shape[3];
  const std::int64_t rows = dscores.shape[0] * dscores.shape[1] * dscores.shape[2];
#pragma omp parallel if (rows * cols > kParallelElements)
  {
    std::vector<float> gradient(static_cast<std::size_t>(cols));
    std::vector<float> probability(static_cast<std::size_t>(cols));
#pragma omp for schedule(static)
    for (std::int64_t row = 0; row < rows; ++row) {
      load_row(dprobs.data, dprobs.dtype, row * cols, 1, cols, gradient.data());
      load_row(probs.data, probs.dtype, row * cols, 1, cols, probability.data());
      float* dp = gradient.data();
      const float* p = probability.data();
      const float sum = lane_sum(cols, [dp, p](std::int64_t c) { return p[c] * dp[c]; });
      for (std::int64_t c = 0; c < cols; ++c) dp[c] = options.scale * (p[c] * (dp[c] - sum));
      MaskRow(mask, dscores, options.causal, row).fill(dp, 0.0f);
      store_row(dp, dscores.data, dscores.dtype, row * cols, 1, cols);
    }
  }
}

}  // namespace

void register_softmax_kernels(Backend& backend) {
  backend.add<ops::SoftmaxForwardKernel>("exact", &softmax_forward);
  backend.add<ops::SoftmaxBackwardKernel>("exact", &softmax_backward);
}

}  // namespace kitchen::reference
