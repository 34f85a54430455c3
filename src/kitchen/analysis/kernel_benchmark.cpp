#include "kitchen/analysis/kernel_benchmark.h"

#include "kitchen/analysis/random_matrix.h"
#include "kitchen/analysis/text_table.h"
#include "kitchen/base/error.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/quantized_gemm.h"

#include <cblas.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace kitchen::analysis {

namespace {

constexpr double kGiga = 1e9;

KernelRow row(const std::string& name, const std::string& shape, const char* unit, double work,
              Timing timing) {
  return {name, shape, std::move(timing), work, unit, 0.0};
}

/// The cast alone: the scale is given, so no amax is looked for.
KernelRow encode_only(const ContextPtr& context, const Tensor& x, const std::string& shape,
                      const Repeats& repeats) {
  const QuantizeSpec spec;
  const Tensor codes = Tensor::empty(context, {1, x.dim(0), x.dim(1)}, DType::float8_e4m3);
  const Tensor scale_inv = Tensor::empty(context, {1, 1, 1}, DType::float32);
  const Tensor scale = Tensor::from_vector(context, {1}, std::vector<float>{448.0f});
  const Tensor slices = x.view({1, x.dim(0), x.dim(1)});
  const auto bytes = static_cast<double>(4 * x.numel());
  return row("encode e4m3, scale given", shape, "GB/s", bytes,
             measure(
                 [&] {
                   context->launch<ops::QuantizeKernel>(
                       "", slices.const_view(), ConstView(), scale.const_view(),
                       codes.kernel_view(), scale_inv.kernel_view(), spec, ops::RoundingStream());
                 },
                 repeats));
}

std::string shape_text(const GemmShape& shape) {
  return fmt::format("{}x{}x{}", shape.m, shape.n, shape.k);
}

KernelRow plain_sgemm(const Tensor& a, const Tensor& b, const Tensor& d, const GemmShape& shape,
                      double flops, const Repeats& repeats) {
  const auto m = static_cast<blasint>(shape.m);
  const auto n = static_cast<blasint>(shape.n);
  const auto k = static_cast<blasint>(shape.k);
  return row("sgemm called directly", shape_text(shape), "GFLOP/s", flops,
             measure(
                 [&] {
                   cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0f,
                               a.data<float>(), k, b.data<float>(), k, 0.0f, d.data<float>(), n);
                 },
                 repeats));
}

KernelRow fp8_product(const Tensor& a, const Tensor& b, const GemmShape& shape, double flops,
                      const Repeats& repeats) {
  const QuantizeSpec spec = quantize_spec_from_scheme_name("mxfp8_e4m3_row");
  const Timing casts = measure(
      [&] {
        (void)ops::quantize(a, spec);
        (void)ops::quantize(b, spec);
      },
      repeats);
  const QuantizedMatrix qa = ops::quantize(a, spec);
  const QuantizedMatrix qb = ops::quantize(b, spec);
  KernelRow result =
      row("product mxfp8", shape_text(shape), "GFLOP/s", flops,
          measure([&] { (void)ops::quantized_gemm(qa, qb, DType::float32); }, repeats));
  result.casts_seconds = casts.median();
  return result;
}

}  // namespace

double KernelRow::rate() const {
  const double seconds = timing.median();
  return seconds > 0 ? work / seconds / kGiga : 0.0;
}

std::vector<KernelRow> benchmark_codec(const ContextPtr& context, std::int64_t rows,
                                       std::int64_t cols, const Repeats& repeats) {
  if (rows < 1 || cols < 1) {
    throw ValueError(fmt::format("--rows {} and --cols {}: both must be positive", rows, cols));
  }
  const Tensor x = random_matrix(context, rows, cols, 1);
  const std::string shape = fmt::format("{}x{}", rows, cols);
  const auto bytes = static_cast<double>(4 * x.numel());
  std::vector<KernelRow> result{encode_only(context, x, shape, repeats)};
  for (const char* scheme : {"tensor_e4m3", "b1x128_e4m3_pow2", "mxfp8_e4m3_row", "nvfp4_row"}) {
    const QuantizeSpec spec = quantize_spec_from_scheme_name(scheme);
    result.push_back(row(std::string("quantize ") + scheme, shape, "GB/s", bytes,
                         measure([&] { (void)ops::quantize(x, spec); }, repeats)));
  }
  for (const char* scheme : {"tensor_e4m3", "mxfp8_e4m3_row"}) {
    const QuantizedMatrix codes = ops::quantize(x, quantize_spec_from_scheme_name(scheme));
    result.push_back(row(std::string("dequantize ") + scheme, shape, "GB/s", bytes,
                         measure([&] { (void)ops::dequantize(codes, DType::float32); }, repeats)));
  }
  return result;
}

GemmShape parse_gemm_shape(const std::string& text) {
  GemmShape shape;
  char rest = 0;
  const int read = std::sscanf(text.c_str(), "%ldx%ldx%ld%c", &shape.m, &shape.n, &shape.k, &rest);
  if (read != 3 || shape.m < 1 || shape.n < 1 || shape.k < 1) {
    throw ValueError("--shape is '" + text +
                     "', expected MxNxK with positive sizes, such as 256x768x3072");
  }
  return shape;
}

std::vector<KernelRow> benchmark_gemm(const ContextPtr& context,
                                      const std::vector<GemmShape>& shapes,
                                      const Repeats& repeats) {
  std::vector<KernelRow> result;
  for (const GemmShape& shape : shapes) {
    const Tensor a = random_matrix(context, shape.m, shape.k, 1);
    const Tensor b = random_matrix(context, shape.n, shape.k, 2);
    const Tensor d = Tensor::empty(context, {shape.m, shape.n}, DType::float32);
    const double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                         static_cast<double>(shape.k);
    result.push_back(plain_sgemm(a, b, d, shape, flops, repeats));
    result.push_back(row("product float32", shape_text(shape), "GFLOP/s", flops,
                         measure([&] { ops::gemm_into(a, b, d, false); }, repeats)));
    const Tensor a16 = ops::cast(a, DType::bfloat16);
    const Tensor b16 = ops::cast(b, DType::bfloat16);
    const Tensor d16 = Tensor::empty(context, {shape.m, shape.n}, DType::bfloat16);
    result.push_back(row("product bfloat16", shape_text(shape), "GFLOP/s", flops,
                         measure([&] { ops::gemm_into(a16, b16, d16, false); }, repeats)));
    result.push_back(fp8_product(a, b, shape, flops, repeats));
  }
  return result;
}

std::string to_text(const std::vector<KernelRow>& rows) {
  std::vector<std::vector<std::string>> table{
      {"what", "shape", "median ms", "spread", "rate", "casts ms"}};
  for (const KernelRow& r : rows) {
    table.push_back({r.name, r.shape, fmt::format("{:.3f}", r.timing.median() * 1e3),
                     fmt::format("{:.0f} %", r.timing.spread() * 100),
                     fmt::format("{:.2f} {}", r.rate(), r.unit),
                     r.casts_seconds > 0 ? fmt::format("{:.3f}", r.casts_seconds * 1e3) : "-"});
  }
  return format_table(table);
}

std::string to_json(const std::vector<KernelRow>& rows) {
  nlohmann::ordered_json root = nlohmann::ordered_json::array();
  for (const KernelRow& r : rows) {
    root.push_back({{"name", r.name},
                    {"shape", r.shape},
                    {"median_seconds", r.timing.median()},
                    {"fastest_seconds", r.timing.fastest()},
                    {"slowest_seconds", r.timing.slowest()},
                    {"repeats", r.timing.seconds.size()},
                    {"rate", r.rate()},
                    {"unit", r.unit},
                    {"casts_seconds", r.casts_seconds}});
  }
  return root.dump(2) + "\n";
}

}  // namespace kitchen::analysis
