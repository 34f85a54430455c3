#pragma once

#include "kitchen/analysis/timing.h"
#include "kitchen/base/context.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kitchen::analysis {

/// One measured row of a kernel benchmark.
struct KernelRow {
  std::string name;   ///< "quantize e4m3, one scale a tensor"
  std::string shape;  ///< "16384x1024", "256x768x3072" (m x n x k)
  Timing timing;
  double work =
      0.0;  ///< bytes of float32 read or written, or floating-point operations, of one repeat
  std::string unit;            ///< "GB/s" or "GFLOP/s"
  double casts_seconds = 0.0;  ///< quantization of operands, timed apart; 0 where there is none

  [[nodiscard]] double rate() const;  ///< work / median, in units of `unit`
};

/// Encoding and decoding of a matrix that does not fit into caches: GB/s of its float32 side.
std::vector<KernelRow> benchmark_codec(const ContextPtr& context, std::int64_t rows,
                                       std::int64_t cols, const Repeats& repeats);

/// Sizes of one product d[m, n] = a[m, k]·b[n, k].
struct GemmShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// "256x768x3072". @throws ValueError naming the text and the form.
GemmShape parse_gemm_shape(const std::string& text);

/// The library's products beside a plain sgemm on the same operands, and the fp8 product with its
/// casts apart.
std::vector<KernelRow> benchmark_gemm(const ContextPtr& context,
                                      const std::vector<GemmShape>& shapes, const Repeats& repeats);

std::string to_text(const std::vector<KernelRow>& rows);
std::string to_json(const std::vector<KernelRow>& rows);

}  // namespace kitchen::analysis
