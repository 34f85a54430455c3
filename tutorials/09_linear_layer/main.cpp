#include "common/data.h"
#include "common/layers.h"
#include "common/lesson.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/extension/kitchen_linear.h"
#include "kitchen/modules/init_methods.h"
#include "kitchen/modules/quantized_operand.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/parallel/rng_tracker.h"
#include "kitchen/report/bar_chart.h"

#include <fmt/format.h>

#include <cmath>

namespace {

using namespace kitchen;
using tutorials::bf16_transformer;
using tutorials::exact;
using tutorials::Lesson;
using tutorials::linear_recipe;
using tutorials::normal_tensor;
using tutorials::relative_error;
using tutorials::within;

constexpr std::int64_t kTokens = 128;
constexpr std::int64_t kIn = 256;
constexpr std::int64_t kOut = 192;

LinearArgs arguments(const TransformerConfig& config = bf16_transformer(kIn, 4)) {
  LinearArgs args;
  args.parallel_mode = std::optional<std::string>("duplicated");  // every rank has all of it
  args.config = std::shared_ptr<ModelParallelConfig>(make_config(config));
  args.init_method = init_method_normal(0.05);
  args.bias = false;
  args.skip_bias_add = false;
  args.skip_weight_param_allocation = false;
  return args;
}

// ## 1. A layer in two phases
//
// The constructor of a Kitchen layer allocates nothing. A model is built from the outside in, and
// only when it stands does each layer have a path that a recipe can match (tutorial 08). So the
// layer waits for `finish_init`, which brings its recipe, and makes its parameters then.
void build_a_layer(Lesson& lesson) {
  model_parallel_cuda_manual_seed(1);
  KitchenLinear layer(kIn, kOut, arguments());
  lesson.number("before", "parameters before finish_init",
                static_cast<double>(layer.named_parameters().size()), exact());
  layer.finish_init(linear_recipe("fp8_cs"));
  lesson.number("after", "weights after finish_init", static_cast<double>(layer.weight.numel()),
                exact());
  lesson.print(layer.kitchen_quant_params->qlinear_params->repr());
}

/// The layer with a recipe. Equal seeds give equal weights, so that only the recipe differs.
std::shared_ptr<KitchenLinear> make_layer(const std::string& recipe) {
  model_parallel_cuda_manual_seed(1);
  auto layer = std::make_shared<KitchenLinear>(kIn, kOut, arguments());
  layer->finish_init(linear_recipe(recipe));
  return layer;
}

struct Step {
  Tensor y;
  Tensor dx;
  Tensor dw;
};

/// Forward and backward of one layer; `g` is the gradient that comes back to y.
Step run_step(KitchenLinear& layer, const Tensor& x, const Tensor& g) {
  const Tensor leaf = x.detach();
  autograd::set_requires_grad(leaf);
  autograd::zero_grad(layer.weight);
  const Tensor y = layer.forward(leaf).first;
  autograd::backward(y, g);
  return {y.detach(), autograd::grad_of(leaf), autograd::grad_of(layer.weight)};
}

Tensor bf16_normal(const ContextPtr& context, std::int64_t cols, std::uint64_t seed, double size) {
  return ops::cast(normal_tensor(context, {kTokens, cols}, seed, size), DType::bfloat16);
}

Step run_recipe(const ContextPtr& context, const std::string& recipe) {
  return run_step(*make_layer(recipe), bf16_normal(context, kIn, 2, 1.0),
                  bf16_normal(context, kOut, 3, 1e-3));
}

// ## 2. Is it quantized at all?
//
// From the outside nothing tells a quantized layer from another one, which is how a misspelled
// recipe can train for a week. An *observer* sees every operand at the moment when it is turned
// into codes: here are the six uses of tutorial 06, in the order in which the layer makes them.
std::vector<std::string> quantized_uses(const ContextPtr& context, const std::string& recipe) {
  modules::OperandCallLog log;
  const modules::OperandObserverScope scope(&log);
  run_recipe(context, recipe);
  return log.entries();
}

void watch_the_operands(Lesson& lesson) {
  for (const char* recipe : {"bf16", "fp8_cs", "fp8_cs_bf16_wgrad"}) {
    const auto uses = quantized_uses(lesson.context(), recipe);
    std::string line = fmt::format("  {}:", recipe);
    for (const std::string& use : uses) line += " " + use;
    lesson.print(line);
    lesson.number(fmt::format("uses_{}", recipe), fmt::format("{}, quantized operands", recipe),
                  static_cast<double>(uses.size()), exact());
  }
}

// ## 3. What a recipe costs
//
// Now the comparison that you would make for a recipe of your own: the same weights, the same
// inputs, the same gradient, and bf16 as the reference. E5M2 for g shows in dx and dw of fp8_cs.
// fp8_block and mxfp8 agree to all digits although their blocks differ: both have powers of two for
// scales, and on such friendly numbers a power of two moves no rounding.
void compare_recipes(Lesson& lesson) {
  const Step bf16 = run_recipe(lesson.context(), "bf16");
  report::BarChart chart;
  chart.title = "Error of a linear layer against bf16, by recipe";
  chart.description = "Eight-bit recipes are near four percent in y, four-bit ones near fifteen.";
  chart.id = "recipes";
  chart.value_label = "relative error in percent";
  chart.series = {{"y", {}, {}}, {"dx", {}, {}}, {"dw", {}, {}}};
  for (const char* recipe : {"fp8_cs", "fp8_block", "mxfp8", "nvfp4", "mxfp4"}) {
    const Step step = run_recipe(lesson.context(), recipe);
    chart.categories.emplace_back(recipe);
    const std::pair<Tensor, Tensor> pairs[] = {
        {step.y, bf16.y}, {step.dx, bf16.dx}, {step.dw, bf16.dw}};
    for (std::size_t i = 0; i < 3; ++i) {
      const double error = 100.0 * relative_error(ops::cast(pairs[i].first, DType::float32),
                                                  ops::cast(pairs[i].second, DType::float32));
      chart.series[i].values.push_back(error);
      chart.series[i].labels.push_back(fmt::format("{:.1f}", error));
      lesson.number(fmt::format("{}_{}", chart.series[i].name, recipe),
                    fmt::format("{}, error of {}", recipe, chart.series[i].name), error,
                    within(0.02), "%");
    }
  }
  lesson.figure("errors_by_recipe.svg", report::bar_chart(chart));
}

// ## 4. Gradients have tails
//
// Normal numbers flatter every recipe. In real training some tokens are long learned, and their
// gradients are millions of times smaller than those of a surprise. We let the size of g fall over
// the tokens by eight decades and look at dx of the quietest eighth. One scale a tensor is set by
// the loudest token; whether the quiet ones survive is a matter of exponent bits, so fp8_cs takes
// E5M2 for gradients although its steps are twice as coarse. A scale for each row, or an E8M0 scale
// for each block, does not ask the question. NVFP4 does: its block scales are E4M3 numbers under
// one scale a tensor (tutorial 04), so they run out where E4M3 codes do.
Tensor long_tailed(const ContextPtr& context) {
  std::vector<float> g = normal_tensor(context, {kTokens, kOut}, 3).to_vector<float>();
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto token = static_cast<double>(i / static_cast<std::size_t>(kOut));
    g[i] *= static_cast<float>(std::pow(10.0, -8.0 * token / kTokens));
  }
  return ops::cast(Tensor::from_vector<float>(context, {kTokens, kOut}, g), DType::bfloat16);
}

double quiet_error(const ContextPtr& context, const std::string& recipe) {
  const Tensor x = bf16_normal(context, kIn, 2, 1.0);
  const auto quiet_dx = [&](const std::string& name) {
    const Tensor dx = run_step(*make_layer(name), x, long_tailed(context)).dx;
    return ops::cast(dx.slice(0, kTokens * 7 / 8, kTokens / 8), DType::float32);
  };
  return 100.0 * relative_error(quiet_dx(recipe), quiet_dx("bf16"));
}

void look_at_quiet_tokens(Lesson& lesson) {
  for (const char* recipe : {"fp8_cs_e4m3", "fp8_cs", "fp8_rowwise", "mxfp8", "nvfp4"}) {
    lesson.number(fmt::format("quiet_{}", recipe), fmt::format("{}, dx of quiet tokens", recipe),
                  quiet_error(lesson.context(), recipe), within(0.02), "%");
  }
}

std::string uses_with_bf16_wgrad(const ContextPtr& context) {
  return fmt::format("{}", quantized_uses(context, "fp8_cs_bf16_wgrad").size());
}

/// Bytes that a layer keeps of an x [2048, 4096] besides its weight; nothing is computed.
double mebibytes_kept(const std::string& recipe) {
  TransformerConfig config = bf16_transformer(4096, 4);
  config.init_model_with_meta_device = true;
  KitchenLinear layer(4096, 1024, arguments(config));
  layer.finish_init(linear_recipe(recipe));
  layer.disable_parameter_transpose_cache = true;
  const Tensor x = Tensor::empty(layer.weight.context(), {2048, 4096}, DType::bfloat16);
  autograd::set_requires_grad(x);
  const auto bytes = tutorials::saved_bytes(layer.forward(x).first) - layer.weight.nbytes();
  return static_cast<double>(bytes) / (1 << 20);
}

std::string kept_by_two_recipes(const ContextPtr&) {
  return fmt::format("{} {}", mebibytes_kept("mxfp8"), mebibytes_kept("nvfp4"));
}

std::string weights_of_two_microbatches(const ContextPtr& context) {
  modules::OperandCallLog log;
  const modules::OperandObserverScope scope(&log);
  const auto layer = make_layer("mxfp8");
  for (int i = 0; i < 2; ++i) {
    run_step(*layer, bf16_normal(context, kIn, 2, 1.0), bf16_normal(context, kOut, 3, 1e-3));
  }
  int count = 0;
  for (const modules::OperandInfo& info : log.infos()) count += info.operand == "w" ? 1 : 0;
  return fmt::format("{}", count);
}

}  // namespace

int main(int argc, char** argv) {
  return tutorials::run_tutorial(
      "09_linear_layer",
      {{"A layer in two phases", build_a_layer},
       {"Is it quantized at all?", watch_the_operands},
       {"What a recipe costs", compare_recipes},
       {"Gradients have tails", look_at_quiet_tokens}},
      {{"Recipe fp8_cs_bf16_wgrad leaves one product in bf16: how many operands are quantized?",
        "Each of the other two products has two operands.", uses_with_bf16_wgrad},
       {"Change the recipe: how many MiB does a layer keep of a bf16 x [2048, 4096] with mxfp8, "
        "and "
        "how many with nvfp4, whose codes this library holds one a byte?",
        "A byte for each code, and one for each scale: 32 numbers share it, or 16.",
        kept_by_two_recipes},
       {"Run two micro-batches before the weights change: how many times is w quantized?",
        "The first micro-batch makes both copies; is there a reason to make them again?",
        weights_of_two_microbatches}},
      argc, argv);
}
