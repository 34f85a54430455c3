#include "common/attention.h"
#include "common/data.h"
#include "common/lesson.h"

#include "kitchen/autograd/math_functions.h"
#include "kitchen/extension/kitchen_dot_product_attention.h"
#include "kitchen/extension/kitchen_flash_attention.h"
#include "kitchen/formats/codec.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/flash_attention_fp8.h"
#include "kitchen/ops/quantize.h"
#include "kitchen/ops/softmax.h"
#include "kitchen/report/bar_chart.h"
#include "kitchen/report/heat_map.h"

#include <fmt/format.h>

#include <cmath>

namespace {

using namespace kitchen;
using tutorials::AttentionInputs;
using tutorials::AttentionSizes;
using tutorials::exact;
using tutorials::Lesson;
using tutorials::make_attention;
using tutorials::normal_tensor;
using tutorials::relative_error;
using tutorials::within;

float through_e4m3(float x) {
  return formats::decode(formats::encode(x, formats::kE4M3), formats::kE4M3);
}

// ## 1. A probability is a small number
//
// Every row of P sums to one, so a row over many keys has small entries. 4096 equal ones are 2^-12,
// below half of E4M3's smallest number. A scale cures it, and P needs no search: none exceeds 1.
void round_a_uniform_row(Lesson& lesson) {
  const float p = 1.0f / 4096.0f;
  lesson.number("plain", "1/4096 through E4M3", through_e4m3(p), exact());
  lesson.number("scaled", "scaled by 448 and back", through_e4m3(448 * p) / 448, exact());
}

/// The average of 4096 ones in fp8 flash attention, for one score 0 and 4095 of -7.
double average_of_ones(const ContextPtr& context, float p_scale) {
  std::vector<float> scores(4096, -7.0f);
  scores[0] = 0.0f;
  const auto quantized = [&](const std::vector<float>& values) {
    const Shape shape{1, 1, static_cast<std::int64_t>(values.size()), 1};
    return ops::quantize(Tensor::from_vector<float>(context, shape, values),
                         quantize_spec_from_scheme_name("tensor_e4m3"));
  };
  ops::FlashAttentionOptions options;
  options.causal = false;
  options.p_scale = p_scale;
  const auto result = ops::flash_attention_fp8_forward(quantized({1.0f}), quantized(scores),
                                                       quantized(std::vector<float>(4096, 1.0f)),
                                                       DType::float32, options);
  return result.o.to_vector<float>()[0];
}

// ## 2. Flash attention divides last
//
// Flash attention rounds $e^{t - m}$, which is 1 for the largest score, and divides at the end. A
// uniform row is a row of ones there, and no trouble. What remains is a row with one large score
// and a long tail: the tail's entries vanish one by one in the sum of values, but not in the sum
// that it is divided by. So the library multiplies by 256 before the cast, the largest power of two
// that E4M3 has. An average of ones is then one, up to the rounding of P.
void average_a_tail(Lesson& lesson) {
  lesson.number("ones", "average of 4096 ones, factor 256",
                average_of_ones(lesson.context(), 256.0f), within(1e-3));
}

constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kTokens = 128;
constexpr std::int64_t kHeadDim = 64;

Tensor round_trip(const Tensor& x, const std::string& scheme) {
  const auto spec = quantize_spec_from_scheme_name(scheme);
  return ops::dequantize(ops::quantize(x, spec), DType::float32);
}

struct Attention {
  Tensor p;    // [1, heads, tokens, tokens]
  Tensor out;  // [1, heads, tokens, head_dim]
};

/// Causal attention in fp32, the operands in `which` sent through a format.
Attention attend(const ContextPtr& context, const std::string& which, const std::string& scheme) {
  const auto operand = [&](char name, const Tensor& x) {
    return which.find(name) == std::string::npos ? x : round_trip(x, scheme);
  };
  const Shape shape{1, kHeads, kTokens, kHeadDim};
  const Tensor q = operand('Q', normal_tensor(context, shape, 1, 2.0));
  const Tensor k = operand('K', normal_tensor(context, shape, 2));
  const Tensor v = ops::contiguous(normal_tensor(context, shape, 3).transpose(2, 3));
  ops::SoftmaxOptions options;
  options.causal = true;
  const Tensor scores = autograd::matmul_nt(q, k, 1.0f / std::sqrt(float{kHeadDim}));
  const Tensor p = operand('P', ops::softmax_forward(scores, {}, options));
  return {p, autograd::matmul_nt(p, operand('V', v))};
}

// ## 3. One operand at a time
//
// Four operands enter the two products of attention. We round one of them and leave the other
// three alone. Q and K act through an exponential, so an error of a score is a relative error of a
// probability: it grows with the size of the scores. V acts linearly, and so does P, which does
// best: a row is carried by its few largest entries, and those are what a block scale fits.
void round_one_operand(Lesson& lesson) {
  report::BarChart chart;
  chart.title = "Error of attention when one operand is quantized";
  chart.description = "Four operands, each in three schemes; errors grow from eight to four bits.";
  chart.id = "operands";
  chart.value_label = "relative error of the output in percent";
  chart.categories = {"Q", "K", "P", "V"};
  const Tensor exact_out = attend(lesson.context(), "", "").out;
  for (const char* scheme : {"tensor_e4m3", "mxfp8_e4m3_row", "nvfp4_row"}) {
    report::BarSeries series{scheme, {}, {}};
    for (const std::string& operand : chart.categories) {
      const Tensor out = attend(lesson.context(), operand, scheme).out;
      const double error = 100.0 * relative_error(out, exact_out);
      series.values.push_back(error);
      series.labels.push_back(fmt::format("{:.1f}", error));
      lesson.number(operand + "_" + scheme, operand + " in " + scheme, error, within(0.01), "%");
    }
    chart.series.push_back(series);
  }
  lesson.figure("errors_by_operand.svg", report::bar_chart(chart));
}

// ## 4. Attention maps
//
// The same in a picture: where eight tokens look, in fp32 and with Q and K in NVFP4. Compare row by
// row: the strongest key stays the strongest, its weight moves by a few percent. That is why models
// bear quantized attention at all, and why a token that weighs two keys equally is the first to
// change its mind.
void draw_map(Lesson& lesson, const std::string& file, const std::string& title, const Tensor& p) {
  constexpr std::int64_t kShown = 8;
  report::HeatMap map;
  map.title = title;
  map.description = "Rows are queries, columns are keys; above the diagonal all is zero.";
  map.id = file.substr(0, file.find('.'));
  map.value_label = "probability in percent";
  map.decimals = 0;
  const auto values = p.to_vector<float>();
  for (std::int64_t i = 0; i < kShown; ++i) {
    map.rows.push_back(fmt::format("query {}", i));
    map.columns.push_back(fmt::format("key {}", i));
    for (std::int64_t j = 0; j < kShown; ++j) {
      map.values.push_back(100.0 * values[static_cast<std::size_t>(i * kTokens + j)]);
    }
  }
  lesson.figure(file, report::heat_map(map));
}

void draw_maps(Lesson& lesson) {
  const Tensor before = attend(lesson.context(), "", "").p;
  const Tensor after = attend(lesson.context(), "QK", "nvfp4_row").p;
  draw_map(lesson, "map_fp32.svg", "Where eight tokens look, fp32", before);
  draw_map(lesson, "map_nvfp4.svg", "Where eight tokens look, Q and K in NVFP4", after);
  lesson.number("map", "change of all probabilities", 100.0 * relative_error(after, before),
                within(0.01), "%");
}

/// The output of the documented class under a recipe.
Tensor run(const std::string& recipe, bool flash, const AttentionInputs& in) {
  const AttentionSizes sizes{kTokens, kHeads, kHeadDim};
  std::shared_ptr<modules::ForwardAttention> core;
  if (flash) {
    core = make_attention<KitchenFlashAttention>(sizes, tutorials::flash_recipe(recipe));
  } else {
    core = make_attention<KitchenDotProductAttention>(sizes, tutorials::attention_recipe(recipe));
  }
  return core->forward(in.q, in.k, in.v, std::nullopt);
}

double percent(const Tensor& x, const Tensor& y) {
  return 100.0 * relative_error(ops::cast(x, DType::float32), ops::cast(y, DType::float32));
}

// ## 5. A scale that sees the future
//
// A causal model must not know the next token. We make v of the last token a hundred times larger
// and look at the first half of the outputs, which may not change. In bf16 nothing does. One scale
// a head is computed over all tokens, so the last one changes the rounding of all others: nothing
// that a model could read as text, but not nothing. Blocks of 32 keys keep it in the family.
AttentionInputs with_loud_token(const AttentionInputs& in, std::int64_t token, float factor) {
  AttentionInputs changed = in;
  changed.v = ops::scale(in.v, 1.0f);
  ops::scale_inplace(changed.v.slice(0, token, 1), factor);
  return changed;
}

void look_into_the_future(Lesson& lesson) {
  const auto in = tutorials::attention_inputs(lesson.context(), {kTokens, kHeads, kHeadDim});
  const Tensor bf16 = run("bf16", false, in);
  const auto look = [&](const std::string& recipe, bool flash) {
    const Tensor out = run(recipe, flash, in).slice(0, 0, kTokens / 2);
    const Tensor loud = run(recipe, flash, with_loud_token(in, kTokens - 1, 100.0f));
    lesson.number("error_" + recipe, recipe + ", error",
                  percent(out, bf16.slice(0, 0, kTokens / 2)), within(0.05), "%");
    lesson.number("future_" + recipe, "  moved by the last token",
                  percent(loud.slice(0, 0, kTokens / 2), out), within(0.05), "%");
  };
  look("mxfp8_emulation", false);
  look("fp8_cs", false);
  look("triton_fa_bf16_for_all_base_2", true);
  look("fa_fp8_e4m3_base_2", true);
}

std::string uniform_row(const ContextPtr&) {
  return fmt::format("{} {}", through_e4m3(1.0f / 4096), through_e4m3(448.0f / 4096));
}

std::string ones_without_factor(const ContextPtr& context) {
  return fmt::format("{:.4f}", average_of_ones(context, 1.0f));
}

std::string first_token_reached(const ContextPtr& context) {
  const auto in = tutorials::attention_inputs(context, {kTokens, kHeads, kHeadDim});
  const Tensor out = run("mxfp8_emulation", false, in);
  const Tensor loud = run("mxfp8_emulation", false, with_loud_token(in, 40, 10000.0f));
  std::int64_t token = 0;
  while (percent(loud.slice(0, token, 1), out.slice(0, token, 1)) == 0.0) ++token;
  return fmt::format("{}", token);
}

}  // namespace

int main(int argc, char** argv) {
  return tutorials::run_tutorial(
      "12_quantized_attention",
      {{"A probability is a small number", round_a_uniform_row},
       {"Flash attention divides last", average_a_tail},
       {"One operand at a time", round_one_operand},
       {"Attention maps", draw_maps},
       {"A scale that sees the future", look_into_the_future}},
      {{"What does E4M3 make of 1/4096, and of 448/4096?",
        "Half of the smallest E4M3 number is 2^-10. And 448/4096 = 7/64.", uniform_row},
       {"Change the factor of stage 2 from 256 to 1: what is the average of ones?",
        "e^-7 alone is lost in the sum of values. The sum below the line has 4095 of them.",
        ones_without_factor},
       {"mxfp8_emulation, and v of token 40 becomes 10000 times larger: which is the first output "
        "that changes?",
        "A block of V has 32 keys and one scale.", first_token_reached}},
      argc, argv);
}
