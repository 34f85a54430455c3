#include "common/data.h"
#include "common/lesson.h"

#include "kitchen/formats/codec.h"
#include "kitchen/ops/quantized_gemm.h"
#include "kitchen/report/line_chart.h"

#include <fmt/format.h>

#include <cmath>

namespace {

using namespace kitchen;
using tutorials::exact;
using tutorials::Lesson;
using tutorials::normal_tensor;
using tutorials::relative_error;
using tutorials::within;

QuantizeSpec spec_of(const formats::ScaleGranularity& granularity) {
  QuantizeSpec spec;
  spec.granularity = granularity;
  return spec;
}

ops::GemmOptions variant(const char* name) {
  ops::GemmOptions options;
  options.variant = name;
  return options;
}

// ## 1. One element, by hand
//
// A quantized product is a product of what the codes stand for. For one scale a tensor the two
// scales do not depend on k, so they leave the sum: add up products of codes, scale once at the
// end.
void multiply_by_hand(Lesson& lesson) {
  const auto a = ops::quantize(normal_tensor(lesson.context(), {4, 64}, 1), spec_of({0, 0}));
  const auto b = ops::quantize(normal_tensor(lesson.context(), {4, 64}, 2), spec_of({0, 0}));
  const auto codes_a = a.codes.to_vector<std::uint8_t>();
  const auto codes_b = b.codes.to_vector<std::uint8_t>();
  double sum = 0.0;
  for (std::size_t k = 0; k < 64; ++k) {
    sum += double{formats::decode(codes_a[k], formats::kE4M3)} *
           double{formats::decode(codes_b[k], formats::kE4M3)};
  }
  const double scales =
      double{a.scale_inv.to_vector<float>()[0]} * b.scale_inv.to_vector<float>()[0];
  lesson.number("by_hand", "element (0, 0) by hand", sum * scales, exact());
  const Tensor d = ops::quantized_gemm(a, b, DType::float32, variant("ref64"));
  lesson.number("by_library", "element (0, 0) by quantized_gemm", d.to_vector<float>()[0], exact());
}

// ## 2. Where block scales enter
//
// With blocks of 1 x 128 the scales change along k, so each block has to be scaled before it is
// added to the rest: one multiplication for 128 products. That is the whole reason why blocks run
// along the reduced dimension. If they ran across it, every product would need its own scale.
void multiply_with_blocks(Lesson& lesson) {
  const Tensor x = normal_tensor(lesson.context(), {2, 256}, 3);
  const Tensor w = normal_tensor(lesson.context(), {2, 256}, 4);
  const auto a = ops::quantize(x, spec_of(formats::kBlock1x128));
  const auto b = ops::quantize(w, spec_of(formats::kBlock1x128));
  const auto codes_a = a.codes.to_vector<std::uint8_t>();
  const auto codes_b = b.codes.to_vector<std::uint8_t>();
  const auto scales_a = a.scale_inv.to_vector<float>();
  const auto scales_b = b.scale_inv.to_vector<float>();
  double total = 0.0;
  for (std::size_t block = 0; block < 2; ++block) {
    double sum = 0.0;
    for (std::size_t k = block * 128; k < block * 128 + 128; ++k) {
      sum += double{formats::decode(codes_a[k], formats::kE4M3)} *
             double{formats::decode(codes_b[k], formats::kE4M3)};
    }
    total += sum * scales_a[block] * scales_b[block];
  }
  const Tensor d = ops::quantized_gemm(a, b, DType::float32, variant("ref64"));
  // The library rounds each code times scale to fp32 before it multiplies; we did not.
  lesson.number("blocks_by_hand", "element (0, 0), block by block", total, within(1e-6));
  lesson.number("blocks_by_library", "the same by quantized_gemm", d.to_vector<float>()[0],
                exact());
}

// ## 3. Two errors, and how they grow with k
//
// There are two. The *quantization* error comes from the operands: it is large, and since errors of
// many terms partly cancel as the terms themselves do, its share of the result stays put as k
// grows. The *accumulation* error comes from adding in fp32: tiny, but it grows, and its bound
// $(k + 3) \cdot 2^{-24}$ grows with k. The bound is against the sum of the absolute products. Both
// are on one picture so that you see how far apart they are.
struct Errors {
  double quantization = 0.0;
  double accumulation = 0.0;
};

Errors errors_at(const ContextPtr& context, std::int64_t k) {
  const Tensor x = normal_tensor(context, {32, k}, 5);
  const Tensor w = normal_tensor(context, {32, k}, 6);
  const auto a = ops::quantize(x, spec_of(formats::kBlock1x128));
  const auto b = ops::quantize(w, spec_of(formats::kBlock1x128));
  const Tensor exact_product = ops::gemm(x, w, DType::float32, variant("exact"));
  const Tensor oracle = ops::quantized_gemm(a, b, DType::float32, variant("ref64"));
  const Tensor fast = ops::quantized_gemm(a, b, DType::float32, variant("fast"));
  return {relative_error(oracle, exact_product), relative_error(fast, oracle)};
}

void draw_errors_against_k(Lesson& lesson) {
  report::LineSeries quantization{"quantization of the operands", {}, {}, 0, true, false};
  report::LineSeries accumulation{"accumulation in fp32", {}, {}, 1, true, false};
  report::LineSeries bound{"bound of the accumulation", {}, {}, 2, false, false};
  for (std::int64_t k = 32; k <= 4096; k *= 2) {
    const Errors errors = errors_at(lesson.context(), k);
    for (report::LineSeries* series : {&quantization, &accumulation, &bound}) {
      series->x.push_back(static_cast<double>(k));
    }
    quantization.y.push_back(errors.quantization);
    accumulation.y.push_back(errors.accumulation);
    bound.y.push_back(static_cast<double>(k + 3) * std::exp2(-24.0));
  }
  report::LineChart chart;
  chart.title = "Two errors of an E4M3 product, by the length of its sums";
  chart.description =
      "Over k from 32 to 4096 the quantization error is flat near 4 percent; the "
      "accumulation error lies far below, and its bound rises with k.";
  chart.x = {"k, the number of products in a sum", true};
  chart.y = {"relative error", true};
  chart.series = {quantization, accumulation, bound};
  lesson.figure("errors_by_k.svg", report::line_chart(chart));
  lesson.number("error_32", "quantization error at k = 32", quantization.y.front(), within(1e-4));
  lesson.number("error_4096", "quantization error at k = 4096", quantization.y.back(),
                within(1e-4));
}

/// FLOP and bytes of d = a·bᵀ with quantized operands, from tensors that exist in shape only.
double flop_a_byte(const ContextPtr& context, std::int64_t m, DType out_dtype) {
  const ContextPtr meta = make_meta_context(*context);
  const auto a = ops::quantize(Tensor::empty(meta, {m, 4096}, DType::bfloat16), spec_of({0, 0}));
  const auto b = ops::quantize(Tensor::empty(meta, {4096, 4096}, DType::bfloat16), spec_of({0, 0}));
  const Tensor d = ops::quantized_gemm(a, b, out_dtype);
  const std::int64_t bytes = a.codes.nbytes() + b.codes.nbytes() + d.nbytes();
  return 2.0 * static_cast<double>(d.numel()) * 4096.0 / static_cast<double>(bytes);
}

// ## 4. What a machine has to do for it
//
// A product is worth its operations a byte. Square and large, each loaded byte is used thousands of
// times and the arithmetic units are the limit. With one row, as when a model writes text one token
// at a time, each weight is used once: memory is the limit, and fewer bits mean more speed
// directly.
void count_operations(Lesson& lesson) {
  lesson.number("flop_large", "m = 4096", flop_a_byte(lesson.context(), 4096, DType::bfloat16),
                exact(), "FLOP a byte");
  lesson.number("flop_one", "m = 1", flop_a_byte(lesson.context(), 1, DType::bfloat16), exact(),
                "FLOP a byte");
}

std::string flop_of_16_rows(const ContextPtr& context) {
  return fmt::format("{}", flop_a_byte(context, 16, DType::bfloat16));
}

std::string flop_with_fp32_output(const ContextPtr& context) {
  return fmt::format("{}", flop_a_byte(context, 4096, DType::float32));
}

/// Where k·2^-24 meets the worst rounding of E4M3: half a step of 1/8 above 1.
std::string crossing(const ContextPtr&) {
  const double step =
      formats::decode(formats::encode(1.0f, formats::kE4M3) + 1, formats::kE4M3) - 1.0;
  return fmt::format("{}", std::exp2(24.0) * (step / 2.0) / (1.0 + step / 2.0) / 1000.0);
}

}  // namespace

int main(int argc, char** argv) {
  return tutorials::run_tutorial(
      "05_quantized_gemm",
      {{"One element, by hand", multiply_by_hand},
       {"Where block scales enter", multiply_with_blocks},
       {"Two errors, and how they grow with k", draw_errors_against_k},
       {"What a machine has to do for it", count_operations}},
      {{"m = 16, n = k = 4096, fp8 in, bf16 out: how many FLOP a byte?",
        "2mnk operations; mk + nk bytes in and 2mn bytes out.", flop_of_16_rows},
       {"Change the output of the 4096 x 4096 x 4096 product to fp32: how many FLOP a byte?",
        "The output now has 4 bytes an element, as much as both inputs twice.",
        flop_with_fp32_output},
       {"At how many thousand k does k · 2^-24 reach the worst rounding of E4M3, 1/17?",
        "2^24 is about 16.8 million.", crossing}},
      argc, argv);
}
