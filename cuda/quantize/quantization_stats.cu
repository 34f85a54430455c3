/// @file   cuda/quantize/quantization_stats.cu
/// @brief  One thread compares one row with its quantized form; the host adds the rows.
///
/// Idea     The sums are fp64 in the order of the contract, which leaves one chain of additions a
///          row: the rows are the parallelism. A monitor calls this once in many steps.
/// Picture  thread r: Σ_c x², Σ_c (x - code·scale)², counters ─> sums of row r ─ copy ─> host: Σ_r
/// Needs    Nothing: any strides. Waits for the stream.
/// Roofline reads 3 B and adds 2 fp64 numbers an element.
/// Expect   A hundred times the time of the quantization: uncoalesced reads.
/// Measured see the contract run of tools/gpu_test (written by the run, never typed here)
/// Next     Tiles in shared memory, so that neighbouring threads read neighbouring columns.

#include "cuda/base/launch.h"
#include "cuda/base/stream_scratch.h"
#include "cuda/quantize/quantize.h"
#include "cuda/quantize/quantize_job.cuh"
#include "cuda/quantize/stored_scale.cuh"

#include <cmath>
#include <vector>

namespace kitchen::cuda {

namespace {

struct RowStats {
  double signal, noise;
  std::int64_t saturated, underflowed, non_finite;
};

/// The largest |x| / |largest code's value| that still rounds to the largest code.
double rounding_reach(const formats::FloatSpec& format) {
  const double largest = formats::max_value(format);
  const double step =
      format.is_integer() ? 1.0 : std::ldexp(1.0, format.max_exponent - format.mantissa_bits);
  return (largest + 0.5 * step) / largest;
}

__device__ bool is_largest(std::uint8_t code, const formats::FloatSpec& format) {
  const std::uint32_t magnitude =
      format.is_integer() ? static_cast<std::uint32_t>(fabsf(formats::decode(code, format)))
                          : code & (format.sign_mask() - 1u);
  return magnitude == static_cast<std::uint32_t>(format.max_code);
}

__device__ void add_element(RowStats& stats, float x, float quantized, bool is_largest,
                            double reach) {
  if (!isfinite(x)) {
    ++stats.non_finite;
    return;
  }
  const double value = x;
  const double error = value - static_cast<double>(quantized);
  stats.signal += value * value;
  stats.noise += error * error;
  if (value != 0.0 && quantized == 0.0f) ++stats.underflowed;
  if (is_largest && fabs(value) > reach * fabs(static_cast<double>(quantized))) ++stats.saturated;
}

__global__ void row_stats_kernel(const __grid_constant__ MatrixSource m,
                                 const __grid_constant__ StoredScales scales,
                                 const std::uint8_t* codes, formats::FloatSpec format, double reach,
                                 RowStats* of_rows) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= m.slices * m.rows) return;
  RowStats stats{};
  for (std::int64_t col = 0; col < m.cols; col += kSegment) {
    float x[kSegment];
    const auto count = static_cast<int>(min(std::int64_t{kSegment}, m.cols - col));
    load_segment(m, row / m.rows, row % m.rows, col, count, x);
    for (int i = 0; i < count; ++i) {
      const std::uint8_t code = codes[row * m.cols + col + i];
      const float quantized =
          formats::decode(code, format) * scale_at(scales, row / m.rows, row % m.rows, col + i);
      add_element(stats, x[i], quantized, is_largest(code, format), reach);
    }
  }
  of_rows[row] = stats;
}

}  // namespace

void quantization_stats(const Stream& stream, ConstView x, const ops::QuantizedView& quantized,
                        ops::QuantizationStats* stats) {
  *stats = {};
  stats->num_elements = quantized.codes.numel();
  if (quantized.codes.numel() == 0) return;
  const std::int64_t rows = quantized.codes.shape[0] * quantized.codes.shape[1];
  std::vector<RowStats> of_rows(static_cast<std::size_t>(rows));
  const StreamScratch memory(stream, rows * static_cast<std::int64_t>(sizeof(RowStats)));
  row_stats_kernel<<<static_cast<unsigned>(ceil_div(rows, kThreads)), kThreads, 0,
                     native(stream)>>>(
      matrix_source(x, quantized.codes.shape[2], quantized.spec.hadamard), stored_scales(quantized),
      static_cast<const std::uint8_t*>(quantized.codes.data), quantized.spec.format,
      rounding_reach(quantized.spec.format), memory.as<RowStats>());
  KITCHEN_CUDA_CHECK(cudaGetLastError());
  KITCHEN_CUDA_CHECK(cudaMemcpyAsync(of_rows.data(), memory.as<RowStats>(),
                                     of_rows.size() * sizeof(RowStats), cudaMemcpyDeviceToHost,
                                     native(stream)));
  KITCHEN_CUDA_CHECK(cudaStreamSynchronize(native(stream)));
  for (const RowStats& row : of_rows) {
    stats->signal_power += row.signal;
    stats->noise_power += row.noise;
    stats->num_saturated += row.saturated;
    stats->num_underflowed += row.underflowed;
    stats->num_non_finite += row.non_finite;
  }
}

}  // namespace kitchen::cuda
