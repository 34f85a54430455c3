#include "common/attention.h"
#include "common/data.h"
#include "common/lesson.h"

#include "kitchen/autograd/node.h"
#include "kitchen/extension/kitchen_dot_product_attention.h"
#include "kitchen/extension/kitchen_flash_attention.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/flash_attention.h"
#include "kitchen/report/line_chart.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace {

using namespace kitchen;
using tutorials::AttentionSizes;
using tutorials::exact;
using tutorials::Lesson;
using tutorials::relative_error;
using tutorials::within;

const std::vector<float> kScores = {1.0f, 3.0f, 2.0f, 6.0f, 5.0f, 100.0f, 99.0f, 97.0f};

/// Attention with these scores: one query 1, one feature, and the scores as keys.
ops::FlashAttentionResult attend(const ContextPtr& context, const std::vector<float>& scores,
                                 const std::vector<float>& values) {
  const auto column = [&](const std::vector<float>& x) {
    return Tensor::from_vector<float>(context, {static_cast<std::int64_t>(x.size()), 1, 1, 1}, x);
  };
  ops::FlashAttentionOptions options;
  options.causal = false;
  return ops::flash_attention_forward(column({1.0f}), column(scores), column(values), options);
}

// ## 1. A softmax in one pass
//
// $p_j = e^{t_j} / \sum_i e^{t_i}$ looks harmless, but $e^{100}$ is no fp32 number. So one
// subtracts the largest score first, and that seems to need a pass of its own before the sum. The
// *online softmax* does both at once: when a larger score appears, the sum so far is scaled down
// to the new maximum. What it ends with is the logarithm of the sum, a number of ordinary size.
void sum_in_one_pass(Lesson& lesson) {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0.0f;
  for (const float score : kScores) {
    const float new_max = std::max(max, score);
    sum = sum * std::exp(max - new_max) + std::exp(score - new_max);
    max = new_max;
    lesson.print(fmt::format("  score {:>3}: maximum {:>3}, sum {:.4f}", score, max, sum));
  }
  lesson.number("lse", "log of the sum of exponentials", max + std::log(sum), within(1e-6));
  const float lse = attend(lesson.context(), kScores, kScores).lse.to_vector<float>()[0];
  lesson.number("lse_library", "the library's", lse, within(1e-6));
}

// ## 2. The values go along
//
// We do not want the probabilities but $o = \sum_j p_j v_j$, and that sum can be rescaled in the
// same way. So keys and values are read in tiles, each once, and what is known of a query is three
// things: a maximum, a sum, and an output that is not divided yet. No tile looks back at another.
// The division comes last, once for each query instead of once for each score.
void sum_values_by_tiles(Lesson& lesson) {
  const std::vector<float> values = {8.0f, 7.0f, 6.0f, 5.0f, 4.0f, 3.0f, 2.0f, 1.0f};
  constexpr std::size_t kTile = 4;
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0.0f;
  float out = 0.0f;
  for (std::size_t tile = 0; tile < kScores.size(); tile += kTile) {
    float new_max = max;
    for (std::size_t j = tile; j < tile + kTile; ++j) new_max = std::max(new_max, kScores[j]);
    const float shrink = std::exp(max - new_max);
    sum *= shrink;
    out *= shrink;
    for (std::size_t j = tile; j < tile + kTile; ++j) {
      sum += std::exp(kScores[j] - new_max);
      out += std::exp(kScores[j] - new_max) * values[j];
    }
    max = new_max;
    lesson.print(fmt::format("  keys up to {}: output so far {:.4f}", tile + kTile, out / sum));
  }
  lesson.number("out", "output", out / sum, within(1e-6));
  const float library = attend(lesson.context(), kScores, values).o.to_vector<float>()[0];
  lesson.number("out_library", "the library's", library, within(1e-6));
}

using Unfused = KitchenDotProductAttention;
using Flash = KitchenFlashAttention;

std::shared_ptr<Unfused> make_unfused(const AttentionSizes& sizes) {
  return tutorials::make_attention<Unfused>(sizes, tutorials::attention_recipe("bf16"));
}

std::shared_ptr<Flash> make_flash(const AttentionSizes& sizes) {
  return tutorials::make_attention<Flash>(sizes,
                                          tutorials::flash_recipe("triton_fa_bf16_for_all_base_2"));
}

// ## 3. Two classes, one result
//
// `KitchenDotProductAttention` writes the scores down, `KitchenFlashAttention` never does. Backward
// of the second has no probabilities to start from, so it computes the scores of a tile again and
// $p = e^{t - \text{lse}}$ from the one number a query that was kept. In exact arithmetic nothing
// differs. In bf16 the two round at different places: the first rounds scores and probabilities to
// bf16, the second only the probabilities.
void compare_the_classes(Lesson& lesson) {
  const AttentionSizes sizes;
  const auto in = tutorials::attention_inputs(lesson.context(), sizes);
  const auto a = tutorials::run_attention(*make_unfused(sizes), in);
  const auto b = tutorials::run_attention(*make_flash(sizes), in);
  const auto compare = [&](const std::string& name, const Tensor& x, const Tensor& y) {
    const double error = relative_error(ops::cast(x, DType::float32), ops::cast(y, DType::float32));
    lesson.number("error_" + name, name + ", difference", 100.0 * error, within(0.1), "%");
  };
  compare("out", a.out, b.out);
  compare("dq", a.dq, b.dq);
  compare("dk", a.dk, b.dk);
  compare("dv", a.dv, b.dv);
}

// ## 4. Memory against length
//
// Scores are s × s a head. Twice the tokens, four times the memory: beyond a few thousand tokens
// they are all that the memory holds. Flash attention keeps q, k, v, the output and one number a
// query, so its line has slope 1. We ask on the meta device, which allocates nothing; the machine
// that you sit at could not hold the last points.
double mebibytes_kept(modules::ForwardAttention& core, const ContextPtr& context,
                      const AttentionSizes& sizes) {
  const ContextPtr meta = make_meta_context(*context);
  const auto input = [&] {
    const Tensor x = Tensor::empty(meta, {sizes.seq_length, 1, sizes.num_heads, sizes.head_dim},
                                   DType::bfloat16);
    autograd::set_requires_grad(x);
    return x;
  };
  const Tensor out = core.forward(input(), input(), input(), std::nullopt);
  return static_cast<double>(tutorials::saved_bytes(out)) / (1 << 20);
}

void draw_memory(Lesson& lesson) {
  report::LineChart chart;
  chart.title = "Memory that attention keeps for backward, 16 heads of 64";
  chart.description =
      "Over the number of tokens, both axes logarithmic. Unfused attention has slope 2, flash "
      "attention slope 1.";
  chart.x = {"tokens", true};
  chart.y = {"MiB", true};
  chart.series = {{"scores stored", {}, {}, 0, true, false}, {"flash", {}, {}, 1, true, false}};
  for (std::int64_t s = 256; s <= 65536; s *= 4) {
    const AttentionSizes sizes{s, 16, 64};
    const double kept[] = {mebibytes_kept(*make_unfused(sizes), lesson.context(), sizes),
                           mebibytes_kept(*make_flash(sizes), lesson.context(), sizes)};
    for (std::size_t i = 0; i < 2; ++i) {
      chart.series[i].x.push_back(static_cast<double>(s));
      chart.series[i].y.push_back(kept[i]);
    }
    lesson.number(fmt::format("unfused_{}", s), fmt::format("{} tokens, scores stored", s), kept[0],
                  exact(), "MiB");
    lesson.number(fmt::format("flash_{}", s), fmt::format("{} tokens, flash", s), kept[1], exact(),
                  "MiB");
  }
  lesson.figure("memory.svg", report::line_chart(chart));
}

std::string sizes_at_4096(const ContextPtr& context) {
  constexpr std::int64_t kTokens = 4096;
  const Tensor x = Tensor::empty(make_meta_context(*context), {kTokens, 1, 1, 64}, DType::bfloat16);
  const auto result = ops::flash_attention_forward(x, x, x, {});
  const Tensor scores = Tensor::empty(x.context(), {kTokens, kTokens}, DType::float32);
  const double flop = 2.0 * 2.0 * static_cast<double>(scores.numel() * x.dim(3));
  return fmt::format("{} {} {}", flop * 1e-9, scores.nbytes() >> 20, result.lse.nbytes() >> 10);
}

/// Equal scores and a value of 1 for the last key only: the output is one over the keys seen.
std::string keys_in_a_window(const ContextPtr& context) {
  const Tensor zeros = Tensor::zeros(context, {16, 1, 1, 1}, DType::float32);
  std::vector<float> values(16, 0.0f);
  values.back() = 1.0f;
  ops::FlashAttentionOptions options;
  options.window = {5, 0};
  const Tensor v = Tensor::from_vector<float>(context, {16, 1, 1, 1}, values);
  const Tensor o = ops::flash_attention_forward(zeros, zeros, v, options).o;
  return fmt::format("{}", std::lround(1.0f / o.to_vector<float>().back()));
}

std::string excess_over_the_largest(const ContextPtr& context) {
  const std::vector<float> scores = {100.0f, 101.0f, 102.0f};
  return fmt::format("{:.4f}", attend(context, scores, scores).lse.to_vector<float>()[0] - 102.0f);
}

}  // namespace

int main(int argc, char** argv) {
  return tutorials::run_tutorial(
      "11_attention_and_flash_attention",
      {{"A softmax in one pass", sum_in_one_pass},
       {"The values go along", sum_values_by_tiles},
       {"Two classes, one result", compare_the_classes},
       {"Memory against length", draw_memory}},
      {{"4096 tokens, one head of 64, no mask: how many GFLOP have the two products, how many MiB "
        "do "
        "fp32 scores take, and how many KiB the log-sum-exps?",
        "Two products of s × s × d, two operations each; one fp32 a score, one a query.",
        sizes_at_4096},
       {"Change the window of flash attention to (5, 0): how many keys does a late query see?",
        "Five to the left, and itself.", keys_in_a_window},
       {"Run stage 1 on the scores 100, 101, 102: by how much does the log of the sum exceed the "
        "largest score?",
        "ln(1 + e^-1 + e^-2).", excess_over_the_largest}},
      argc, argv);
}
