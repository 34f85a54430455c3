/// @file   cuda/softmax/softmax.cu
/// @brief  Eight lanes make the softmax of one row: maximum, sum of exponentials, quotient.
///
/// Idea     The contract sums a row in 8 interleaved partial sums, so that 8 lanes are the natural
/// team: lane l
///          owns the columns l, l + 8, ... Scores are read again in each pass instead of being
///          kept.
/// Picture  row: c0 c1 .. c7 | c8 .. c15 | ...   lane l adds c_l + c_{l+8} + ...   then xor-shuffle
/// 4, 2, 1 Needs    Dense scores; any mask strides. Result valid in all 8 lanes. Roofline reads 2 B
/// and writes 2 B an element (bfloat16); three reads, two of them from the caches. Expect   >= 30 %
/// of the measured copy bandwidth for rows of 1024. Measured see the contract run of tools/gpu_test
/// (written by the run, never typed here) Next     Rows staged through shared memory by the whole
/// warp.

#include "kitchen/ops/softmax.h"

#include "cuda/base/element_io.cuh"
#include "cuda/base/lanes.cuh"
#include "cuda/base/launch.h"
#include "cuda/register_kernels.h"

namespace kitchen::cuda {

namespace {

constexpr int kLanes = 8;

/// Rows of [b, np, sq, sk] and what masks them.
struct Rows {
  std::int64_t rows, heads, queries, cols;
  const std::uint8_t* mask;  ///< or null
  std::int64_t mask_strides[4];
  bool causal;
};

Rows rows_of(const View& scores, const ConstView& mask, bool causal) {
  Rows rows{scores.shape[0] * scores.shape[1] * scores.shape[2],
            scores.shape[1],
            scores.shape[2],
            scores.shape[3],
            nullptr,
            {},
            causal};
  if (mask.defined()) {
    rows.mask = static_cast<const std::uint8_t*>(mask.data);
    for (std::size_t i = 0; i < 4; ++i) rows.mask_strides[i] = mask.strides[i];
  }
  return rows;
}

struct RowMask {
  std::int64_t visible;  ///< columns from here on are causally masked
  const std::uint8_t* flags;
  std::int64_t stride;

  __device__ bool hides(std::int64_t col) const {
    return col >= visible || (flags != nullptr && flags[col * stride] != 0);
  }
};

__device__ RowMask mask_of(const Rows& r, std::int64_t row) {
  const std::int64_t query = row % r.queries;
  const std::int64_t head = row / r.queries % r.heads;
  const std::int64_t batch = row / r.queries / r.heads;
  RowMask mask{r.cols, nullptr, 0};
  if (r.causal) {
    mask.visible = max(std::int64_t{0}, min(r.cols, query + r.cols - r.queries + 1));
  }
  if (r.mask != nullptr) {
    mask.flags =
        r.mask + batch * r.mask_strides[0] + head * r.mask_strides[1] + query * r.mask_strides[2];
    mask.stride = r.mask_strides[3];
  }
  return mask;
}

__global__ void softmax_forward_kernel(Rows r, ConstElements scores, Elements probs, float scale,
                                       float masked_value) {
  const std::int64_t row = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  // A lane without a row works on the first one without storing: the shuffles want all lanes.
  const bool is_active = row < r.rows;
  const std::int64_t at = (is_active ? row : 0) * r.cols;
  const RowMask mask = mask_of(r, is_active ? row : 0);
  const auto score = [&](std::int64_t c) {
    return mask.hides(c) ? masked_value : load_element(scores, at + c) * scale;
  };
  float maximum = -INFINITY;
  for (std::int64_t c = lane; c < r.cols; c += kLanes) {
    const float value = score(c);
    maximum = value > maximum ? value : maximum;
  }
  for (int step = kLanes / 2; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(0xFFFFFFFFu, maximum, step);
    maximum = other > maximum ? other : maximum;
  }
  // Without a finite score, -inf - -inf would be NaN; shifting by 0 leaves exp(-inf) = 0.
  const float shift = maximum == -INFINITY ? 0.0f : maximum;
  float sum = 0.0f;
  for (std::int64_t c = lane; c < r.cols; c += kLanes) sum += exp_exact(score(c) - shift);
  sum = sum_lanes(sum, kLanes);
  const float divisor = sum == 0.0f ? 1.0f : sum;
  if (!is_active) return;
  for (std::int64_t c = lane; c < r.cols; c += kLanes) {
    store_element(probs, at + c, exp_exact(score(c) - shift) / divisor);
  }
}

__global__ void softmax_backward_kernel(Rows r, ConstElements dprobs, ConstElements probs,
                                        Elements dscores, float scale) {
  const std::int64_t row = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const bool is_active = row < r.rows;
  const std::int64_t at = (is_active ? row : 0) * r.cols;
  const RowMask mask = mask_of(r, is_active ? row : 0);
  float sum = 0.0f;
  for (std::int64_t c = lane; c < r.cols; c += kLanes) {
    sum += load_element(probs, at + c) * load_element(dprobs, at + c);
  }
  sum = sum_lanes(sum, kLanes);
  if (!is_active) return;
  for (std::int64_t c = lane; c < r.cols; c += kLanes) {
    const float p = load_element(probs, at + c);
    const float gradient = scale * (p * (load_element(dprobs, at + c) - sum));
    store_element(dscores, at + c, mask.hides(c) ? 0.0f : gradient);
  }
}

unsigned blocks_of(const Rows& rows) {
  return static_cast<unsigned>(ceil_div(rows.rows * kLanes, kThreads));
}

void softmax_forward(const Stream& stream, ConstView scores, ConstView mask, View probs,
                     const ops::SoftmaxOptions& options) {
  if (probs.numel() == 0) return;
  const Rows rows = rows_of(probs, mask, options.causal);
  softmax_forward_kernel<<<blocks_of(rows), kThreads, 0, native(stream)>>>(
      rows, elements_of(scores), elements_of(probs), options.scale, options.masked_value);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

void softmax_backward(const Stream& stream, ConstView dprobs, ConstView probs, ConstView mask,
                      View dscores, const ops::SoftmaxOptions& options) {
  if (dscores.numel() == 0) return;
  const Rows rows = rows_of(dscores, mask, options.causal);
  softmax_backward_kernel<<<blocks_of(rows), kThreads, 0, native(stream)>>>(
      rows, elements_of(dprobs), elements_of(probs), elements_of(dscores), options.scale);
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void register_softmax_kernels(Backend& backend) {
  backend.add<ops::SoftmaxForwardKernel>("exact", &softmax_forward);
  backend.add<ops::SoftmaxBackwardKernel>("exact", &softmax_backward);
}

}  // namespace kitchen::cuda
