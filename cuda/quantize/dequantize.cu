/// @file   cuda/quantize/dequantize.cu
/// @brief  One thread decodes 8 neighbouring codes of a row: code times the scale of its block, one
/// rounding.
///
/// Idea     A pack of 8 never leaves its row, so that it needs one row of scales; blocks of 16
/// columns and more
///          give it one scale, narrower ones several.
/// Picture  codes [c0 .. c7] ─ decode ─ · scale_inv(row block, column block) ─> [y0 .. y7]
/// Needs    Nothing: rows whose length is no multiple of 8 end in a shorter pack.
/// Roofline reads 1 B and the scales, writes 2 B (bfloat16). Memory-bound.
/// Expect   >= 50 % of the measured copy bandwidth.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     A GEMM that decodes its tiles itself.

#include "kitchen/formats/scale_rule.h"

#include "cuda/base/launch.h"
#include "cuda/quantize/quantize.h"
#include "cuda/quantize/quantize_job.cuh"
#include "cuda/quantize/stored_scale.cuh"

namespace kitchen::cuda {

namespace {

template <class Format>
__global__ void __launch_bounds__(kThreads)
    dequantize_kernel(const __grid_constant__ StoredScales s, Format format,
                      const std::uint8_t* codes, Elements out) {
  const std::int64_t per_row = (s.cols + kPack - 1) / kPack;
  const std::int64_t packs = s.slices * s.rows * per_row;
  const bool aligned = s.cols % kPack == 0 && reinterpret_cast<std::uintptr_t>(codes) % 8 == 0;
  const bool aligned_out =
      s.cols % kPack == 0 && reinterpret_cast<std::uintptr_t>(out.data) % 16 == 0;
  for (std::int64_t p = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < packs;
       p += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t row = p / per_row;  // counts all slices
    const std::int64_t col = p % per_row * kPack;
    const std::int64_t at = row * s.cols + col;
    const std::int64_t count = min(std::int64_t{kPack}, s.cols - col);
    alignas(8) std::uint8_t code[kPack];
    if (aligned) {
      *reinterpret_cast<uint2*>(code) = *reinterpret_cast<const uint2*>(codes + at);
    } else {
      for (int i = 0; i < kPack; ++i) code[i] = i < count ? codes[at + i] : 0;
    }
    float values[kPack];
    for (int i = 0; i < kPack; ++i) {
      const std::int64_t c = col + (i < count ? i : 0);
      values[i] =
          formats::decode(code[i], format.spec()) * scale_at(s, row / s.rows, row % s.rows, c);
    }
    store_up_to(out, at, count, aligned_out, values);
  }
}

}  // namespace

void dequantize(const Stream& stream, const ops::QuantizedView& x, View out) {
  if (out.numel() == 0) return;
  const StoredScales scales = stored_scales(x);
  const std::int64_t packs = scales.slices * scales.rows * ceil_div(scales.cols, kPack);
  with_format(x.spec.format, [&](auto format) {
    dequantize_kernel<<<blocks_for(packs), kThreads, 0, native(stream)>>>(
        scales, format, static_cast<const std::uint8_t*>(x.codes.data), elements_of(out));
  });
  KITCHEN_CUDA_CHECK(cudaGetLastError());
}

}  // namespace kitchen::cuda
