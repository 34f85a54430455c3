#include "kitchen/analysis/quantize_benchmark.h"

#include "kitchen/analysis/random_matrix.h"
#include "kitchen/analysis/text_table.h"
#include "kitchen/base/error.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/quantize.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <functional>

namespace kitchen::analysis {

namespace {

/// A benchmark's row before it is timed.
struct Candidate {
  std::string name;
  double bytes;
  std::function<void()> work;
};

/// memcpy on all threads, in pieces of a page's multiple.
void copy_in_parallel(const void* from, void* to, std::int64_t bytes) {
  constexpr std::int64_t kPiece = 1 << 20;
#pragma omp parallel for schedule(static)
  for (std::int64_t start = 0; start < bytes; start += kPiece) {
    std::memcpy(static_cast<char*>(to) + start, static_cast<const char*>(from) + start,
                static_cast<std::size_t>(std::min(kPiece, bytes - start)));
  }
}

Candidate copy_of(const Tensor& x) {
  const Tensor target = Tensor::empty(x.context(), x.shape(), x.dtype());
  return {"copy", 2.0 * static_cast<double>(x.nbytes()),
          [=] { copy_in_parallel(x.raw_data(), target.raw_data(), x.nbytes()); }};
}

View as_slice(const Tensor& x) {
  return x.view({1, x.dim(0), x.dim(1)}).kernel_view();
}

double bytes_of(const QuantizedMatrix& x) {
  return static_cast<double>(x.codes.nbytes() + x.scale_inv.nbytes());
}

/// Two reads, one write: the scale needs the amax first.
Candidate tensor_kernels(const Tensor& x) {
  const QuantizedMatrix q = ops::quantize(x, QuantizeSpec());
  return {"tensor_e4m3, amax and codes", 2.0 * static_cast<double>(x.nbytes()) + bytes_of(q), [=] {
            const Context& context = *x.context();
            context.launch<ops::MatrixAmaxKernel>("", as_slice(x), q.amax.kernel_view(), q.spec);
            context.launch<ops::QuantizeKernel>("", as_slice(x), q.amax.const_view(), ConstView(),
                                                as_slice(q.codes), as_slice(q.scale_inv), q.spec,
                                                ops::RoundingStream());
          }};
}

/// One read, two writes.
Candidate both_copies_kernel(const Tensor& x, const QuantizeSpec& spec) {
  const ops::QuantizedPair pair = ops::quantize_both(x, spec);
  const double bytes =
      static_cast<double>(x.nbytes()) + bytes_of(pair.rowwise) + bytes_of(pair.columnwise);
  return {"b1x128_e4m3_fp32, both copies", bytes, [=] {
            x.context()->launch<ops::QuantizeBothKernel>(
                "", as_slice(x), as_slice(pair.rowwise.codes), as_slice(pair.rowwise.scale_inv),
                as_slice(pair.columnwise.codes), as_slice(pair.columnwise.scale_inv), spec);
          }};
}

std::vector<Candidate> candidates(const Tensor& x) {
  const QuantizeSpec blocks = quantize_spec_from_scheme_name("b1x128_e4m3_fp32");
  std::vector<Candidate> all{copy_of(x), tensor_kernels(x), both_copies_kernel(x, blocks)};
  all.push_back({"op: " + all[1].name, all[1].bytes, [=] { (void)ops::quantize(x, {}); }});
  all.push_back({"op: " + all[2].name, all[2].bytes, [=] { (void)ops::quantize_both(x, blocks); }});
  return all;
}

double ratio(double a, double b) {
  return b > 0 ? a / b : 0.0;
}

}  // namespace

double QuantizeRow::gigabytes_per_second() const {
  return ratio(bytes, timing.median()) * 1e-9;
}

double QuantizeRow::share_of_copy() const {
  return ratio(bytes * copy.median(), copy_bytes * timing.median());
}

double QuantizeRow::fastest_share_of_copy() const {
  return ratio(bytes * copy.fastest(), copy_bytes * timing.fastest());
}

std::vector<QuantizeRow> benchmark_quantize(const ContextPtr& context, std::int64_t rows,
                                            std::int64_t cols, const Repeats& repeats) {
  if (rows < 1 || cols < 1) {
    throw ValueError(fmt::format("--rows {} and --cols {}: both must be positive", rows, cols));
  }
  const Tensor x = ops::cast(random_matrix(context, rows, cols, 1), DType::bfloat16);
  const std::vector<Candidate> all = candidates(x);
  std::vector<std::function<void()>> works;
  for (const Candidate& candidate : all) works.push_back(candidate.work);
  const std::vector<Timing> timings = measure_in_turns(works, repeats);
  std::vector<QuantizeRow> result;
  for (std::size_t i = 0; i < all.size(); ++i) {
    result.push_back({all[i].name, fmt::format("{}x{}", rows, cols), all[i].bytes, timings[i],
                      timings[0], all[0].bytes});
  }
  return result;
}

std::string to_text(const std::vector<QuantizeRow>& rows) {
  std::vector<std::vector<std::string>> table{
      {"what", "shape", "median ms", "fastest ms", "GB/s", "of copy", "fastest of copy"}};
  for (const QuantizeRow& r : rows) {
    table.push_back({r.name, r.shape, fmt::format("{:.3f}", r.timing.median() * 1e3),
                     fmt::format("{:.3f}", r.timing.fastest() * 1e3),
                     fmt::format("{:.1f}", r.gigabytes_per_second()),
                     fmt::format("{:.0f} %", r.share_of_copy() * 100),
                     fmt::format("{:.0f} %", r.fastest_share_of_copy() * 100)});
  }
  return format_table(table);
}

std::string to_json(const std::vector<QuantizeRow>& rows) {
  nlohmann::ordered_json root = nlohmann::ordered_json::array();
  for (const QuantizeRow& r : rows) {
    root.push_back({{"name", r.name},
                    {"shape", r.shape},
                    {"bytes", r.bytes},
                    {"median_seconds", r.timing.median()},
                    {"fastest_seconds", r.timing.fastest()},
                    {"slowest_seconds", r.timing.slowest()},
                    {"repeats", r.timing.seconds.size()},
                    {"gigabytes_per_second", r.gigabytes_per_second()},
                    {"share_of_copy", r.share_of_copy()},
                    {"fastest_share_of_copy", r.fastest_share_of_copy()}});
  }
  return root.dump(2) + "\n";
}

}  // namespace kitchen::analysis
