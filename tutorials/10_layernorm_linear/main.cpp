#include "common/data.h"
#include "common/layers.h"
#include "common/lesson.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/nn_functions.h"
#include "kitchen/extension/kitchen_layer_norm_column_parallel_linear.h"
#include "kitchen/extension/kitchen_linear.h"
#include "kitchen/modules/init_methods.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/quantize.h"
#include "kitchen/parallel/rng_tracker.h"
#include "kitchen/report/bar_chart.h"

#include <fmt/format.h>

#include <cmath>

namespace {

using namespace kitchen;
using tutorials::exact;
using tutorials::Lesson;
using tutorials::linear_recipe;
using tutorials::normal_tensor;
using FusedLayer = KitchenLayerNormColumnParallelLinear;

constexpr std::int64_t kTokens = 128;
constexpr std::int64_t kIn = 256;
constexpr std::int64_t kOut = 192;

TransformerConfig transformer() {
  return tutorials::bf16_transformer(kIn, 4);
}

std::shared_ptr<FusedLayer> make_fused(const TransformerConfig& config, const std::string& recipe,
                                       std::int64_t in, std::int64_t out) {
  model_parallel_cuda_manual_seed(1);
  LayerNormColumnParallelLinearArgs args;
  args.config = make_config(config);
  args.init_method = init_method_normal(0.05);
  args.gather_output = false;
  args.bias = false;
  args.skip_bias_add = false;
  args.is_expert = false;
  auto layer = std::make_shared<FusedLayer>(in, out, args);
  layer->finish_init(linear_recipe(recipe));
  return layer;
}

// ## 1. Two layers in one
//
// In a transformer every linear layer that reads the residual stream stands behind a normalization.
// The two are one module here, with the parameters of both. Its documented name also says *column
// parallel*, which is how ranks would share its weight; on one rank nothing is split.
void build_one_module(Lesson& lesson) {
  const auto layer = make_fused(transformer(), "mxfp8", kIn, kOut);
  const auto parameters = layer->named_parameters();
  for (const auto& [name, parameter] : parameters) {
    lesson.print(fmt::format("  {} {}", name, to_string(parameter->shape())));
  }
  lesson.number("parameters", "parameters", static_cast<double>(parameters.size()), exact());
}

/// A residual stream [tokens, in] in bf16: normal numbers of a size, around one, with one outlier.
Tensor residual_stream(const ContextPtr& context, double size, float outlier) {
  std::vector<float> x = normal_tensor(context, {kTokens, kIn}, 2, size).to_vector<float>();
  for (float& value : x) value += 1.0f;
  x[7] = outlier;
  return ops::cast(Tensor::from_vector<float>(context, {kTokens, kIn}, x), DType::bfloat16);
}

Tensor normalized(const FusedLayer& layer, const Tensor& x) {
  return autograd::norm(x, layer.layer_norm_weight, layer.layer_norm_bias, ops::NormOptions{});
}

// ## 2. The same bytes
//
// Fusing is about memory traffic and must not change a result. We run the module, then a norm and a
// `KitchenLinear` one after the other with equal weights, and compare. A test like this one is what
// lets you change the fast path without fear.
Tensor run_apart(const FusedLayer& fused, const Tensor& x) {
  LinearArgs args;
  args.parallel_mode = std::optional<std::string>("duplicated");
  args.config = std::static_pointer_cast<ModelParallelConfig>(fused.config);
  args.init_method = init_method_constant(0.0f);
  args.bias = false;
  args.skip_bias_add = false;
  args.skip_weight_param_allocation = false;
  KitchenLinear linear(kIn, kOut, args);
  linear.finish_init(linear_recipe("mxfp8"));
  ops::copy_into(fused.weight.detach(), linear.weight.detach());
  return linear.forward(normalized(fused, x)).first;
}

std::vector<float> values_of(const Tensor& x) {
  return ops::cast(x.detach(), DType::float32).to_vector<float>();
}

void compare_with_two_modules(Lesson& lesson) {
  const auto fused = make_fused(transformer(), "mxfp8", kIn, kOut);
  const Tensor x = residual_stream(lesson.context(), 1.0, 1.0f);
  const auto together = values_of(fused->forward(x).first);
  const auto apart = values_of(run_apart(*fused, x));
  std::size_t different = 0;
  for (std::size_t i = 0; i < together.size(); ++i) different += together[i] == apart[i] ? 0 : 1;
  lesson.number("different", fmt::format("of {} outputs differ", together.size()),
                static_cast<double>(different), exact());
}

// ## 3. What the norm promises to the scale
//
// The residual stream grows from layer to layer, and some tokens grow wild features in it. A scale
// has to follow all that. Behind the norm there is nothing to follow: a token of n features has
// mean 0 and mean square 1, so no feature exceeds $\sqrt{n - 1}$, whatever happens in front.
// Recipes quantize the normalized tensor, and the bound is why one scale a tensor does so well
// there.
double amax(const Tensor& x) {
  return ops::matrix_amax(x.detach(), quantize_spec_from_scheme_name("tensor_e4m3"))
      .to_vector<float>()[0];
}

void watch_the_amax(Lesson& lesson) {
  const auto layer = make_fused(transformer(), "mxfp8", kIn, kOut);
  const auto watch = [&](const std::string& name, double size, float outlier) {
    const Tensor x = residual_stream(lesson.context(), size, outlier);
    lesson.number("raw_" + name, name + " stream, amax", amax(x), exact());
    lesson.number("norm_" + name, "  behind the norm", amax(normalized(*layer, x)), exact());
  };
  watch("calm", 1.0, 1.0f);
  watch("grown", 1000.0, 1.0f);
  watch("wild", 1.0, 10000.0f);
  lesson.number("bound", "no more than", std::sqrt(kIn - 1.0), exact());
}

// ## 4. What is kept for backward
//
// The norm keeps its input x and two numbers a token, and from them its backward makes everything.
// The linear layer keeps what wgrad multiplies, which is the *normalized* tensor: in bf16 a second
// copy as large as x, with a recipe only its codes. The normalized tensor itself is never stored.
// We ask on the meta device, where tensors have shapes and no memory, so the sizes can be real.
struct Kept {
  double norm, linear;
};

Kept mebibytes_kept(const std::string& recipe) {
  TransformerConfig config = transformer();
  config.init_model_with_meta_device = true;
  const auto layer = make_fused(config, recipe, 4096, 1024);
  layer->disable_parameter_transpose_cache = true;
  const Tensor x = Tensor::empty(layer->weight.context(), {2048, 4096}, DType::bfloat16);
  autograd::set_requires_grad(x);
  Kept kept{0.0, -static_cast<double>(layer->weight.nbytes()) / (1 << 20)};
  for (const autograd::TapeEntry& entry : autograd::describe_tape(layer->forward(x).first)) {
    (entry.name == "Linear" ? kept.linear : kept.norm) +=
        static_cast<double>(entry.saved_bytes) / (1 << 20);
  }
  return kept;
}

void compare_what_is_kept(Lesson& lesson) {
  report::BarChart chart;
  chart.title = "Activations kept by a norm and a linear layer, x [2048, 4096]";
  chart.description = "The norm keeps 16 MiB each time, linear 16 in bf16 and half in fp8.";
  chart.id = "kept";
  chart.value_label = "MiB";
  chart.series = {{"by the norm", {}, {}}, {"by the linear layer", {}, {}}};
  for (const char* recipe : {"bf16", "fp8_cs", "mxfp8"}) {
    const Kept kept = mebibytes_kept(recipe);
    chart.categories.emplace_back(recipe);
    chart.series[0].values.push_back(kept.norm);
    chart.series[1].values.push_back(kept.linear);
    const std::string name = recipe;
    lesson.number("by_norm_" + name, name + ", kept by the norm", kept.norm, exact(), "MiB");
    lesson.number("by_linear_" + name, name + ", by the linear", kept.linear, exact(), "MiB");
  }
  lesson.figure("kept.svg", report::bar_chart(chart));
}

// ## 5. What is moved
//
// Norm and quantization do a handful of operations a number, so their time is the time of their
// bytes. Two kernels read x, write the normalized tensor, read it again and write codes. One kernel
// keeps the normalized row on the chip. Here we count both copies, for fprop and for wgrad. Scales
// are left out: one for 32 or 128 numbers. The library's own kernels are the separate ones; a fused
// one would have to give the bytes of stage 2.
double bytes_an_element(const ContextPtr& context, int num_copies, bool is_fused) {
  const Tensor x = Tensor::empty(make_meta_context(*context), {2048, 4096}, DType::bfloat16);
  const auto q = ops::quantize(x, quantize_spec_from_scheme_name("mxfp8_e4m3_row"));
  const std::int64_t reread = is_fused ? 0 : x.nbytes();
  const std::int64_t written = is_fused ? 0 : x.nbytes();
  const std::int64_t moved = x.nbytes() + written + num_copies * (reread + q.codes.nbytes());
  return static_cast<double>(moved) / static_cast<double>(x.numel());
}

void count_bytes_moved(Lesson& lesson) {
  for (const bool is_fused : {false, true}) {
    const std::string name = is_fused ? "fused" : "apart";
    lesson.number("moved_" + name, name, bytes_an_element(lesson.context(), 2, is_fused), exact(),
                  "bytes an element");
  }
}

std::string bytes_of_one_copy(const ContextPtr& context) {
  return fmt::format("{} {}", bytes_an_element(context, 1, false),
                     bytes_an_element(context, 1, true));
}

std::string with_rms_norm(const ContextPtr& context) {
  TransformerConfig config = transformer();
  config.normalization = "RMSNorm";
  const auto layer = make_fused(config, "mxfp8", kIn, kOut);
  const Tensor x = Tensor::zeros(context, {2048, kIn}, DType::bfloat16);
  const auto result = ops::norm_forward(x, layer->layer_norm_weight, {}, {ops::NormKind::rms_norm});
  return fmt::format("{} {}", layer->named_parameters().size(), result.rstd.nbytes());
}

float survives(const ContextPtr& context, float start, float step) {
  const Tensor gamma = Tensor::from_vector<float>(context, {1}, {start + step});
  return values_of(ops::cast(gamma, DType::bfloat16))[0] - start;
}

std::string steps_of_gamma(const ContextPtr& context) {
  return fmt::format("{} {}", survives(context, 1.0f, 0.002f), survives(context, 0.0f, 0.002f));
}

}  // namespace

int main(int argc, char** argv) {
  return tutorials::run_tutorial(
      "10_layernorm_linear",
      {{"Two layers in one", build_one_module},
       {"The same bytes", compare_with_two_modules},
       {"What the norm promises to the scale", watch_the_amax},
       {"What is kept for backward", compare_what_is_kept},
       {"What is moved", count_bytes_moved}},
      {{"Norm, then one copy of one-byte codes: how many bytes an element are moved by two "
        "kernels, "
        "and by one?",
        "bf16 has two bytes. Count each read and each write of two kernels, then of one.",
        bytes_of_one_copy},
       {"Change LayerNorm to RMSNorm: how many parameters has the module, and how many bytes of "
        "statistics does it keep for 2048 tokens?",
        "There is no mean to subtract, and no offset to learn. A statistic is one fp32.",
        with_rms_norm},
       {"An optimizer adds 0.002 to a bf16 gamma of 1. How much arrives? And with zero-centred "
        "gamma, which stores gamma - 1?",
        "Between 1 and 2 bf16 has steps of 2^-7.", steps_of_gamma}},
      argc, argv);
}
