#include "kitchen/reference/quantized_gemm.h"

#include "kitchen/ops/grouped_gemm.h"
#include "kitchen/reference/gemm_tiles.h"
#include "kitchen/reference/matrix_tile.h"
#include "kitchen/reference/quantize.h"

#include <cblas.h>
#include <omp.h>

#include <algorithm>
#include <vector>

namespace kitchen::reference {

namespace {

/// Scales that are constant along the reduction multiply the sum instead of the operand.
bool scales_the_sum(const QuantizeSpec& spec) {
  return spec.granularity.cols == 0;
}

/// Decodes a slice to fp32 [rows, cols]; block scales are applied, those of scales_the_sum are not.
void decode_slice(const ops::QuantizedView& x, std::int64_t slice, float* values) {
  const std::int64_t rows = x.codes.shape[1];
  const std::int64_t cols = x.codes.shape[2];
  const bool plain = scales_the_sum(x.spec);
  const std::int64_t block_rows = x.spec.stored_scale_rows() == 0 ? std::max<std::int64_t>(rows, 1)
                                                                  : x.spec.stored_scale_rows();
  const std::int64_t block_cols = plain ? std::max<std::int64_t>(cols, 1) : x.spec.granularity.cols;
  const auto* codes = static_cast<const std::uint8_t*>(x.codes.data) + slice * rows * cols;
  const DecodeRow decode = row_decoder(x.spec.format);
#pragma omp parallel for if (worth_threads(rows * cols))
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; c += block_cols) {
      const float scale = plain ? 1.0f : stored_scale(x, slice, r / block_rows, c / block_cols);
      decode(x.spec.format, codes + r * cols + c, scale, values + r * cols + c,
             std::min(block_cols, cols - c));
    }
  }
}

/// The scale of row `r` of a slice whose scales multiply the sum, else 1.
float row_scale(const ops::QuantizedView& x, std::int64_t slice, std::int64_t r) {
  if (!scales_the_sum(x.spec)) return 1.0f;
  return stored_scale(x, slice, x.spec.granularity.rows == 0 ? 0 : r / x.spec.granularity.rows, 0);
}

std::vector<float> load_bias(const ConstView& bias, std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n), 0.0f);
  if (!bias.defined()) return values;
  for (std::int64_t j = 0; j < n; ++j) {
    values[static_cast<std::size_t>(j)] = load_element(bias.data, bias.dtype, j);
  }
  return values;
}

struct SliceProblem {
  const ops::QuantizedView& a;
  const ops::QuantizedView& b;
  const View& d;
  const ops::GemmEpilogue& epilogue;
  const std::vector<float>& bias;
  const std::vector<float>& b_scales;  ///< [n]
  std::int64_t slice;
};

/// acc -> · scales · alpha -> + bias -> + C -> d, row by row (S5.3).
void finish_row(const SliceProblem& p, float factor, std::int64_t row, float* acc) {
  const std::int64_t n = p.d.shape[2];
  const float a_scale = row_scale(p.a, p.slice, row);
  const float* b_scales = p.b_scales.data();
  const float* bias = p.bias.data();
  for (std::int64_t j = 0; j < n; ++j) {
    acc[j] = acc[j] * (a_scale * b_scales[j]) * factor;
  }
  if (p.epilogue.bias.defined()) {
    for (std::int64_t j = 0; j < n; ++j) acc[j] += bias[j];
  }
  const std::int64_t at = p.slice * p.d.strides[0] + row * p.d.strides[1];
  if (p.epilogue.accumulate) {
    for (std::int64_t j = 0; j < n; ++j) acc[j] += load_element(p.d.data, p.d.dtype, at + j);
  }
  store_row(acc, p.d.dtype, p.d.data, at, n);
}

/// acc [m, n] = a [m, k] · b [n, k]ᵀ, packed; the same sums for any number of threads.
void multiply_floats(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b,
                     float* acc) {
  if (k == 0) {
    std::fill(acc, acc + m * n, 0.0f);
    return;
  }
  const GemmTiles tiles = gemm_tiles(m, n, k);
#pragma omp parallel for schedule(dynamic) if (m * n * k > kSerialWork)
  for (std::int64_t tile = 0; tile < tiles.m * tiles.n; ++tile) {
    const std::int64_t m0 = m * (tile / tiles.n) / tiles.m;
    const std::int64_t m1 = m * (tile / tiles.n + 1) / tiles.m;
    const std::int64_t n0 = n * (tile % tiles.n) / tiles.n;
    const std::int64_t n1 = n * (tile % tiles.n + 1) / tiles.n;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(m1 - m0),
                static_cast<int>(n1 - n0), static_cast<int>(k), 1.0f, a + m0 * k,
                static_cast<int>(k), b + n0 * k, static_cast<int>(k), 0.0f, acc + m0 * n + n0,
                static_cast<int>(n));
  }
}

void multiply_slice(const SliceProblem& p, float* workspace) {
  const std::int64_t m = p.d.shape[1];
  const std::int64_t n = p.d.shape[2];
  const std::int64_t k = p.a.codes.shape[2];
  float* a = workspace;
  float* b = a + m * k;
  float* acc = b + n * k;
  decode_slice(p.a, p.slice, a);
  decode_slice(p.b, p.slice, b);
  multiply_floats(m, n, k, a, b, acc);
  const float factor = p.epilogue.alpha * global_factor(p.a, p.b, p.slice);
#pragma omp parallel for if (worth_threads(m * n))
  for (std::int64_t row = 0; row < m; ++row) finish_row(p, factor, row, acc + row * n);
}

std::int64_t floats_a_slice(const ops::QuantizedView& a, const ops::QuantizedView& b) {
  const std::int64_t m = a.codes.shape[1];
  const std::int64_t n = b.codes.shape[1];
  const std::int64_t k = a.codes.shape[2];
  return m * k + n * k + m * n;
}

/// Slices that run at the same time, each with a workspace of its own.
std::int64_t lanes(std::int64_t slices) {
  return std::max<std::int64_t>(1, std::min<std::int64_t>(slices, omp_get_max_threads()));
}

std::int64_t fast_workspace(const ops::QuantizedView& a, const ops::QuantizedView& b,
                            const ConstView& d, bool /*accumulate*/) {
  if (d.numel() == 0) return 0;
  return lanes(d.shape[0]) * floats_a_slice(a, b) * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t no_workspace(const ops::QuantizedView& /*a*/, const ops::QuantizedView& /*b*/,
                          const ConstView& /*d*/, bool /*accumulate*/) {
  return 0;
}

/// Problems with more multiplications run one after the other on all threads.
constexpr std::int64_t kLargeProblem = std::int64_t{1} << 26;

bool is_large(const ops::QuantizedProblem& problem) {
  return problem.d.numel() * problem.a.codes.shape[2] > kLargeProblem;
}

std::int64_t largest_problem(const std::vector<ops::QuantizedProblem>& problems) {
  std::int64_t largest = 0;
  for (const ops::QuantizedProblem& p : problems) {
    largest = std::max(largest, fast_workspace(p.a, p.b, p.d, p.epilogue.accumulate));
  }
  return largest;
}

std::int64_t grouped_fast_workspace(const std::vector<ops::QuantizedProblem>& problems) {
  return lanes(static_cast<std::int64_t>(problems.size())) * largest_problem(problems);
}

std::int64_t grouped_no_workspace(const std::vector<ops::QuantizedProblem>& /*problems*/) {
  return 0;
}

void run_fast(const Stream& stream, const ops::QuantizedProblem& p, void* workspace) {
  quantized_gemm_fast(stream, p.a, p.b, p.d, p.epilogue, workspace);
}

void grouped_fast(const Stream& stream, const std::vector<ops::QuantizedProblem>& problems,
                  void* workspace) {
  const auto count = static_cast<std::int64_t>(problems.size());
  const std::int64_t bytes = largest_problem(problems);
  const bool nested = omp_in_parallel() != 0;
  for (const ops::QuantizedProblem& p : problems) {
    if (nested || is_large(p)) run_fast(stream, p, workspace);
  }
  if (nested) return;
#pragma omp parallel for schedule(dynamic) num_threads(static_cast <int>(lanes(count)))
  for (std::int64_t g = 0; g < count; ++g) {
    const ops::QuantizedProblem& p = problems[static_cast<std::size_t>(g)];
    auto* lane = static_cast<std::uint8_t*>(workspace) + omp_get_thread_num() * bytes;
    if (!is_large(p)) run_fast(stream, p, lane);
  }
}

/// One problem after the other.
template <ops::QuantizedGemmKernel::Fn kProduct>
void grouped_in_turn(const Stream& stream, const std::vector<ops::QuantizedProblem>& problems,
                     void* /*workspace*/) {
  for (const ops::QuantizedProblem& p : problems) {
    kProduct(stream, p.a, p.b, p.d, p.epilogue, nullptr);
  }
}

}  // namespace

float global_factor(const ops::QuantizedView& a, const ops::QuantizedView& b, std::int64_t slice) {
  const auto amax = [slice](const ops::QuantizedView& x) {
    return x.spec.rule == formats::ScaleRule::nvfp4 ? static_cast<const float*>(x.amax.data)[slice]
                                                    : 2688.0f;
  };
  const bool neither =
      a.spec.rule != formats::ScaleRule::nvfp4 && b.spec.rule != formats::ScaleRule::nvfp4;
  return neither ? 1.0f : amax(a) * amax(b) / 7225344.0f;
}

void quantized_gemm_fast(const Stream& /*stream*/, const ops::QuantizedView& a,
                         const ops::QuantizedView& b, View d, const ops::GemmEpilogue& epilogue,
                         void* workspace) {
  if (d.numel() == 0) return;
  const std::int64_t slices = d.shape[0];
  const std::int64_t n = d.shape[2];
  const std::vector<float> bias = load_bias(epilogue.bias, n);
  const auto run = [&](std::int64_t slice, std::int64_t lane) {
    std::vector<float> b_scales(static_cast<std::size_t>(n));
    for (std::int64_t j = 0; j < n; ++j)
      b_scales[static_cast<std::size_t>(j)] = row_scale(b, slice, j);
    multiply_slice({a, b, d, epilogue, bias, b_scales, slice},
                   static_cast<float*>(workspace) + lane * floats_a_slice(a, b));
  };
  if (slices == 1 || omp_in_parallel() != 0) {
    for (std::int64_t slice = 0; slice < slices; ++slice) run(slice, 0);
    return;
  }
  // Inside the region the BLAS and the decoders see that they are in one, and stay on their thread.
#pragma omp parallel for num_threads(static_cast <int>(lanes(slices)))
  for (std::int64_t slice = 0; slice < slices; ++slice) run(slice, omp_get_thread_num());
}

void register_quantized_gemm_kernels(Backend& backend) {
  backend.add<ops::QuantizedGemmKernel>("fast", &quantized_gemm_fast);
  backend.add<ops::QuantizedGemmKernel>("ref32", &quantized_gemm_ref32);
  backend.add<ops::QuantizedGemmKernel>("ref64", &quantized_gemm_ref64);
  backend.add<ops::GroupedQuantizedGemmKernel>("fast", &grouped_fast);
  backend.add<ops::GroupedQuantizedGemmKernel>("ref32", &grouped_in_turn<&quantized_gemm_ref32>);
  backend.add<ops::GroupedQuantizedGemmKernel>("ref64", &grouped_in_turn<&quantized_gemm_ref64>);
  backend.add<ops::GroupedQuantizedGemmWorkspaceKernel>("fast", &grouped_fast_workspace);
  backend.add<ops::GroupedQuantizedGemmWorkspaceKernel>("ref32", &grouped_no_workspace);
  backend.add<ops::GroupedQuantizedGemmWorkspaceKernel>("ref64", &grouped_no_workspace);
  backend.add<ops::QuantizedGemmWorkspaceKernel>("fast", &fast_workspace);
  backend.add<ops::QuantizedGemmWorkspaceKernel>("ref32", &no_workspace);
  backend.add<ops::QuantizedGemmWorkspaceKernel>("ref64", &no_workspace);
}

}  // namespace kitchen::reference
