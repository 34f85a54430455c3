/// @file   cuda/scale_layout/scale_layout.cu
/// @brief  One thread moves one scale between row-major order and that of a GEMM backend.
///
/// Idea     A permutation whose one side is written by a formula (formats/scale_layout.h).
/// Picture  scales[row, col] <─> laid_out[offset(row, col)], padding 0
/// Needs    Dense views of rank 3 and 2.
/// Roofline reads and writes each scale once: 1/16 to 1/4096 of the matrix that it scales.
/// Expect   Below a tenth of the time of the quantization.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     Quantization that writes the layout itself.

#include "kitchen/ops/scale_layout.h"

#include "cuda/base/launch.h"
#include "cuda/register_kernels.h"

namespace kitchen::cuda {

namespace {

struct Layout {
  formats::ScaleLayout order;
  std::int64_t rows, cols, size;

  /// Where the scale of row-major index `i`, which counts all slices, lies.
  __device__ std::int64_t place_of(std::int64_t i) const {
    const std::int64_t row = i / cols % rows;
    return i / (rows * cols) * size +
           formats::scale_layout_offset(order, row, i % cols, rows, cols);
  }
};

Layout layout_of(const std::array<std::int64_t, kMaxRank>& shape, formats::ScaleLayout order) {
  return {order, shape[1], shape[2], formats::scale_layout_size(order, shape[1], shape[2])};
}

template <class Scale>
__global__ void arrange_scales_kernel(const Scale* scales, Layout layout, Scale* laid_out,
                                      std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    laid_out[layout.place_of(i)] = scales[i];
  }
}

template <class Scale>
__global__ void restore_scales_kernel(const Scale* laid_out, Layout layout, Scale* scales,
                                      std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    scales[i] = laid_out[layout.place_of(i)];
  }
}

template <class Scale>
void arrange(const Stream& stream, const ConstView& scales, const Layout& layout,
             const View& laid_out) {
  arrange_scales_kernel<<<blocks_for(scales.numel()), kThreads, 0, native(stream)>>>(
      static_cast<const Scale*>(scales.data), layout, static_cast<Scale*>(laid_out.data),
      scales.numel());
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

template <class Scale>
void restore(const Stream& stream, const ConstView& laid_out, const Layout& layout,
             const View& scales) {
  restore_scales_kernel<<<blocks_for(scales.numel()), kThreads, 0, native(stream)>>>(
      static_cast<const Scale*>(laid_out.data), layout, static_cast<Scale*>(scales.data),
      scales.numel());
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

void arrange_scales(const Stream& stream, ConstView scales, formats::ScaleLayout order,
                    View laid_out) {
  const std::int64_t bytes = laid_out.numel() * size_of(laid_out.dtype);
  if (bytes == 0) return;
  KITCHEN_CUDA_CHECK(
      cudaMemsetAsync(laid_out.data, 0, static_cast<std::size_t>(bytes), native(stream)));
  if (scales.numel() == 0) return;
  const Layout layout = layout_of(scales.shape, order);
  if (scales.dtype == DType::float32) return arrange<float>(stream, scales, layout, laid_out);
  arrange<std::uint8_t>(stream, scales, layout, laid_out);
}

void restore_scales(const Stream& stream, ConstView laid_out, formats::ScaleLayout order,
                    View scales) {
  if (scales.numel() == 0) return;
  const Layout layout = layout_of(scales.shape, order);
  if (scales.dtype == DType::float32) return restore<float>(stream, laid_out, layout, scales);
  restore<std::uint8_t>(stream, laid_out, layout, scales);
}

}  // namespace

void register_scale_layout_kernels(Backend& backend) {
  backend.add<ops::ArrangeScalesKernel>("exact", &arrange_scales);
  backend.add<ops::RestoreScalesKernel>("exact", &restore_scales);
}

}  // namespace kitchen::cuda
