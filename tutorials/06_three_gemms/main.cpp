#include "common/data.h"
#include "common/lesson.h"

#include "kitchen/ops/quantized_gemm.h"
#include "kitchen/report/heat_map.h"

#include <fmt/format.h>

#include <cmath>

namespace {

using namespace kitchen;
using tutorials::exact;
using tutorials::Lesson;
using tutorials::normal_tensor;
using tutorials::relative_error;
using tutorials::within;

constexpr std::int64_t kTokens = 96;
constexpr std::int64_t kIn = 256;
constexpr std::int64_t kOut = 160;

struct Layer {
  Tensor x;  // [tokens, in_features]
  Tensor w;  // [out_features, in_features]
  Tensor g;  // [tokens, out_features], the gradient of the loss with respect to y
};

Layer make_layer(const ContextPtr& context) {
  return {normal_tensor(context, {kTokens, kIn}, 1), normal_tensor(context, {kOut, kIn}, 2, 0.05),
          normal_tensor(context, {kTokens, kOut}, 3, 1e-3)};
}

/// The operands of one product d = a·bᵀ: both are [rows, length of the sum].
struct Product {
  const char* name;
  Tensor a;
  Tensor b;
};

std::vector<Product> products_of(const Layer& layer) {
  return {{"fprop", layer.x, layer.w},
          {"dgrad", layer.g, layer.w.transpose(0, 1)},
          {"wgrad", layer.g.transpose(0, 1), layer.x.transpose(0, 1)}};
}

// ## 1. Three products, one form
//
// Forward is one product, backward is two. Each of the three tensors x, w and g enters two of them,
// once as it is and once transposed. We count operations to see where a training step spends its
// time.
void count_the_products(Lesson& lesson) {
  double total = 0.0;
  for (const Product& product : products_of(make_layer(lesson.context()))) {
    const Tensor d = ops::gemm(product.a, product.b, DType::float32);
    const double flop = 2.0 * static_cast<double>(d.numel() * product.a.dim(1));
    lesson.number(fmt::format("flop_{}", product.name),
                  fmt::format("{} -> [{}, {}], FLOP", product.name, d.dim(0), d.dim(1)), flop,
                  exact());
    total += flop;
  }
  lesson.number("flop_a_parameter", "FLOP a parameter and token",
                total / static_cast<double>(kTokens * kIn * kOut), exact());
}

// ## 2. Are these the gradients?
//
// Take the loss $L = \sum g \cdot y$, whose gradient with respect to y is g. Nudge one weight,
// watch the loss, and compare with the product. This is the check to do for any backward that you
// write. It is done without quantization: through a rounding step a small nudge changes nothing or
// too much.
double loss_of(const Layer& layer) {
  ops::GemmOptions options;
  options.variant = "exact";
  const auto y = ops::gemm(layer.x, layer.w, DType::float32, options).to_vector<float>();
  const auto g = layer.g.to_vector<float>();
  double loss = 0.0;
  for (std::size_t i = 0; i < y.size(); ++i) loss += double{g[i]} * y[i];
  return loss;
}

void check_one_gradient(Lesson& lesson) {
  const Layer layer = make_layer(lesson.context());
  const Product wgrad = products_of(layer)[2];
  const float by_product = ops::gemm(wgrad.a, wgrad.b, DType::float32).to_vector<float>()[0];
  constexpr float kNudge = 0.25f;
  const float middle = layer.w.to_vector<float>()[0];
  double change = 0.0;
  for (const float sign : {1.0f, -1.0f}) {
    auto weights = layer.w.to_vector<float>();
    weights[0] = middle + sign * kNudge;
    Layer nudged = layer;
    nudged.w = Tensor::from_vector<float>(lesson.context(), {kOut, kIn}, weights);
    change += double{sign} * loss_of(nudged);
  }
  lesson.number("dw_product", "dw[0, 0] by wgrad", by_product, within(1e-4));
  lesson.number("dw_nudge", "dw[0, 0] by nudging the weight", change / (2.0 * kNudge),
                within(1e-3));
}

// ## 3. Six uses
//
// Blocks of one scale must run along the reduced dimension (tutorial 05). fprop reduces over
// in_features, dgrad over out_features, wgrad over tokens. So each tensor needs two quantized
// copies, and each of the six has its own scales. Their shapes tell the story.
void list_six_uses(Lesson& lesson) {
  const auto spec = quantize_spec_from_scheme_name("b1x128_e4m3_fp32");
  std::int64_t scales = 0;
  for (const Product& product : products_of(make_layer(lesson.context()))) {
    for (const Tensor* operand : {&product.a, &product.b}) {
      const QuantizedMatrix q = ops::quantize(*operand, spec);
      scales += q.scale_inv.numel();
      lesson.print(fmt::format("  {} {}: codes {}, scales {}", product.name,
                               operand == &product.a ? "a" : "b", to_string(q.codes.shape()),
                               to_string(q.scale_inv.shape())));
    }
  }
  lesson.number("scales", "scales of the six copies", static_cast<double>(scales), exact());
}

// ## 4. One copy for two uses?
//
// Two copies of a tensor cost memory and time. Can the transposed codes of the first serve as the
// second? With one scale a tensor and with square blocks, yes: `transpose_quantized` gives the same
// bytes as quantizing the transposed tensor. With lines it cannot be: the blocks run the other way,
// and the library refuses instead of quantizing what was quantized already.
void share_a_copy(Lesson& lesson) {
  const Tensor w = make_layer(lesson.context()).w;
  for (const char* scheme : {"tensor_e4m3", "b1x128_e4m3_fp32"}) {
    const QuantizedMatrix q = ops::quantize(w, quantize_spec_from_scheme_name(scheme));
    try {
      const auto turned = ops::transpose_quantized(q).codes.to_vector<std::uint8_t>();
      const auto direct = ops::quantize(w.transpose(0, 1), q.spec).codes.to_vector<std::uint8_t>();
      lesson.print(
          fmt::format("  {}: {}", scheme, turned == direct ? "the same bytes" : "different"));
    } catch (const std::exception& error) {
      lesson.print(fmt::format("  {}: {}", scheme, error.what()));
    }
  }
}

// ## 5. What each product loses
//
// Now all of it: four schemes, three products, each against the unquantized one. The relative
// errors of a scheme are nearly the same in all three products, since our data are normal numbers
// everywhere. Real gradients have longer tails, and that is where the recipes differ (tutorial 09).
void compare_schemes(Lesson& lesson) {
  report::HeatMap map;
  map.title = "Relative error of the three products of a linear layer";
  map.description =
      "Rows are schemes, columns are fprop, dgrad and wgrad. Four-bit formats are worse.";
  map.id = "products";
  map.value_label = "relative error in percent";
  for (const char* scheme : {"b1x128_e4m3_fp32", "mxfp8_e4m3_row", "nvfp4_row", "mxfp4_row"}) {
    map.rows.emplace_back(scheme);
    for (const Product& product : products_of(make_layer(lesson.context()))) {
      const auto spec = quantize_spec_from_scheme_name(scheme);
      const Tensor d = ops::quantized_gemm(ops::quantize(product.a, spec),
                                           ops::quantize(product.b, spec), DType::float32);
      const double error =
          100.0 * relative_error(d, ops::gemm(product.a, product.b, DType::float32));
      map.values.push_back(error);
      lesson.number(fmt::format("error_{}_{}", scheme, product.name),
                    fmt::format("{}, {}", scheme, product.name), error, within(1e-3), "%");
    }
  }
  map.columns = {"fprop", "dgrad", "wgrad"};
  lesson.figure("errors_by_product.svg", report::heat_map(map));
}

/// The name of each product's reduced dimension, told by its size.
std::string reduced_dimensions(const ContextPtr& context) {
  std::string names;
  for (const Product& product : products_of(make_layer(context))) {
    const std::int64_t length = product.a.dim(1);
    names += length == kIn ? "in_features " : length == kOut ? "out_features " : "tokens ";
  }
  return names;
}

std::string backward_over_forward(const ContextPtr& context) {
  const auto products = products_of(make_layer(context));
  const auto flop = [](const Product& p) { return 2 * p.a.dim(0) * p.b.dim(0) * p.a.dim(1); };
  return fmt::format("{}", (flop(products[1]) + flop(products[2])) / flop(products[0]));
}

std::string scales_of_columnwise_x(const ContextPtr& context) {
  const Tensor x = Tensor::empty(make_meta_context(*context), {2048, 4096}, DType::bfloat16);
  const auto q =
      ops::quantize(x.transpose(0, 1), quantize_spec_from_scheme_name("b1x128_e4m3_fp32"));
  return fmt::format("{} {}", q.scale_inv.numel(),
                     static_cast<double>(q.codes.nbytes() + q.scale_inv.nbytes()) / (1 << 20));
}

}  // namespace

int main(int argc, char** argv) {
  return tutorials::run_tutorial(
      "06_three_gemms",
      {{"Three products, one form", count_the_products},
       {"Are these the gradients?", check_one_gradient},
       {"Six uses", list_six_uses},
       {"One copy for two uses?", share_a_copy},
       {"What each product loses", compare_schemes}},
      {{"Which dimension do fprop, dgrad and wgrad reduce? Of: tokens, in_features, out_features.",
        "It is the one that the result no longer has.", reduced_dimensions},
       {"Change the number of tokens: how many times the FLOP of forward does backward take?",
        "Each product multiplies the same three sizes.", backward_over_forward},
       {"x is [2048, 4096]: how many fp32 scales has its copy for wgrad in blocks of 128, and how "
        "many "
        "MiB do codes and scales take?",
        "wgrad reduces over the 2048 tokens, so 4096 rows of 2048.", scales_of_columnwise_x}},
      argc, argv);
}
