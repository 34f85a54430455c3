#include "kitchen/ops/flash_attention_fp8.h"
#include "kitchen/ops/quantize.h"
#include "ops_b/test_tensors.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <fstream>
#include <string>

namespace kitchen::testing {
namespace {

using Values = std::vector<double>;
using nlohmann::json;

/// The `attention` part of the golden file: made by another program, from the rounding points of
/// S7.3.
const json& golden() {
  static const json part = [] {
    std::ifstream file(std::string(KITCHEN_SOURCE_DIR) + "/tests/golden/golden.json");
    return json::parse(file).at("attention");
  }();
  return part;
}

/// `digits` hex digits a number: 4 of bfloat16 or 8 of float32.
Values numbers(const std::string& hex, std::size_t digits) {
  Values values;
  for (std::size_t i = 0; i < hex.size(); i += digits) {
    const auto word = static_cast<std::uint32_t>(std::stoul(hex.substr(i, digits), nullptr, 16));
    const std::uint32_t bits = digits == 4 ? word << 16 : word;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    values.push_back(value);
  }
  return values;
}

Tensor operand(const ContextPtr& context, const char* name, DType dtype) {
  return tensor_of(context, {golden().at("S"), 1, 1, golden().at("D")},
                   numbers(golden().at(name), 4), dtype);
}

struct Outputs {
  Tensor o, dq, dk, dv, lse;
};

Outputs run(DType dtype, bool natural_exp, double scale) {
  const ContextPtr context = poisoned_context();
  const Tensor q = operand(context, "q", dtype);
  const Tensor k = operand(context, "k", dtype);
  const Tensor v = operand(context, "v", dtype);
  const Tensor dout = operand(context, "do", dtype);
  ops::FlashAttentionOptions options;
  options.scale = static_cast<float>(scale);
  options.natural_exp = natural_exp;
  const ops::FlashAttentionResult r = ops::flash_attention_forward(q, k, v, options);
  const ops::FlashAttentionGradients g =
      ops::flash_attention_backward(dout, q, k, v, r.o, r.lse, options);
  return {r.o, g.dq, g.dk, g.dv, r.lse};
}

/// Hex of a modelled output; `same_as` names the case that holds it.
std::string modelled(const json& entry, const std::string& output) {
  const json& fields = entry.at("outputs").at(output);
  if (!fields.contains("same_as")) return fields.at("f32");
  for (const json& other : golden().at("cases")) {
    if (other.at("name") == fields.at("same_as")) return modelled(other, output);
  }
  return {};
}

template <class HexOf>
void expect_outputs(HexOf&& hex_of, const Outputs& got, double bound) {
  for (const auto& [name, tensor] : std::vector<std::pair<std::string, Tensor>>{
           {"o", got.o}, {"dq", got.dq}, {"dk", got.dk}, {"dv", got.dv}}) {
    EXPECT_TRUE(error_below(numbers(hex_of(name), 8), values_of(tensor), bound)) << name;
  }
}

std::string exact(const std::string& output) {
  return golden().at("exact_f32").at(output);
}

// labels: ops.flash_attention golden.attention
TEST(FlashAttentionGolden, Bfloat16MatchesTheModelledOutputsInBothBases) {
  int num_cases = 0;
  for (const json& entry : golden().at("cases")) {
    const std::string name = entry.at("name");
    if (name.rfind("triton_fa_bf16", 0) != 0) continue;
    ++num_cases;
    const bool natural_exp = name.find("natural") != std::string::npos;
    const double scale = numbers(entry.at("softmax_scale"), 8)[0];
    const Outputs got = run(DType::bfloat16, natural_exp, scale);
    // Modelled outputs are fp32: ours add one rounding to bf16 (3e-6) and flips of p and dS
    // (numerics.md S8.5).
    expect_outputs([&](const std::string& output) { return modelled(entry, output); }, got, 1e-5);
    // Exact outputs: 1e-5, and 2e-5 where outputs are bf16.
    expect_outputs(&exact, got, 2e-5);
    // Scores below 16 in 32 terms: 32 units of 16.
    EXPECT_TRUE(
        close(numbers(entry.at("lse_natural_f32"), 8), values_of(got.lse), 32 * 16 * kUnit32, 0.0));
  }
  EXPECT_EQ(num_cases, 2);
}

// labels: ops.flash_attention golden.attention
TEST(FlashAttentionGolden, Float32MatchesTheExactOutputs) {
  const double scale = numbers(golden().at("cases")[0].at("softmax_scale"), 8)[0];
  for (const bool natural_exp : {false, true}) {
    // Only fp32 round-off is left: (100 units)² is far below 1e-10.
    expect_outputs(&exact, run(DType::float32, natural_exp, scale), 1e-10);
  }
}

// labels: ops.flash_attention_fp8 golden.attention
TEST(FlashAttentionGolden, Fp8MatchesTheModelledOutputs) {
  int num_cases = 0;
  for (const json& entry : golden().at("cases")) {
    if (entry.at("name") != "fa_fp8_e4m3_base_2") continue;
    ++num_cases;
    // Operands of one context: codes, outputs and gradients meet in one call.
    const ContextPtr context = poisoned_context();
    const auto codes = [&](const char* name, const char* scheme) {
      return ops::quantize(operand(context, name, DType::bfloat16).permute({1, 2, 0, 3}),
                           quantize_spec_from_scheme_name(scheme));
    };
    const QuantizedMatrix q = codes("q", "tensor_e4m3");
    const QuantizedMatrix k = codes("k", "tensor_e4m3");
    const QuantizedMatrix v = codes("v", "tensor_e4m3");
    ops::FlashAttentionOptions options;
    options.scale = static_cast<float>(numbers(entry.at("softmax_scale"), 8)[0]);
    const ops::FlashAttentionResult r =
        ops::flash_attention_fp8_forward(q, k, v, DType::bfloat16, options);
    const ops::FlashAttentionGradients g = ops::flash_attention_fp8_backward(
        operand(context, "do", DType::bfloat16), codes("do", "tensor_e5m2"), q, k, v, r.o, r.lse,
        options);
    const Outputs got{r.o, g.dq, g.dk, g.dv, r.lse};
    // 48 keys are one block, so the rounding points are the model's: flips alone, S8.5 allows 1e-3.
    expect_outputs([&](const std::string& output) { return modelled(entry, output); }, got, 1e-3);
    expect_outputs(&exact, got, 2e-2);
    EXPECT_TRUE(
        close(numbers(entry.at("lse_natural_f32"), 8), values_of(got.lse), 32 * 16 * kUnit32, 0.0));
  }
  EXPECT_EQ(num_cases, 1);
}

}  // namespace
}  // namespace kitchen::testing
