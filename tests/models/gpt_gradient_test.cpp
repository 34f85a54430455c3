#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/math_functions.h"
#include "models/gpt_oracle.h"
#include "support/compare.h"
#include "support/gradcheck.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kitchen {
namespace {

using testing::TinyGPT;
using testing::Weights;

struct Case {
  const char* name;
  TinyGPT tiny;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

TinyGPT with(const std::string& positions, bool tied, void (*change)(TransformerConfig&)) {
  TinyGPT tiny;
  tiny.positions = positions;
  tiny.tied = tied;
  change(tiny.config);
  return tiny;
}

std::vector<Case> cases() {
  std::vector<Case> all{
      {"learned_tied_layernorm_gelu", with("learned_absolute", true, [](TransformerConfig&) {})},
      {"learned_untied_two_layers",
       with("learned_absolute", false, [](TransformerConfig& c) { c.num_layers = 2; })},
      {"rope_untied_rmsnorm_swiglu_grouped", with("rope", false,
                                                  [](TransformerConfig& c) {
                                                    c.normalization = "RMSNorm";
                                                    c.gated_linear_unit = true;
                                                    c.activation_func = ActivationFunc::silu;
                                                    c.add_bias_linear = false;
                                                    c.num_query_groups = 1;
                                                  })},
      {"none_tied_qk_layernorm",
       with("none", true, [](TransformerConfig& c) { c.qk_layernorm = true; })},
      {"rope_qk_layernorm_four_heads_two_groups", with("rope", true, [](TransformerConfig& c) {
         c.qk_layernorm = true;
         c.num_attention_heads = 4;
         c.num_query_groups = 2;
         c.add_bias_linear = false;
         c.add_qkv_bias = true;
       })}};
  all.push_back({"half_rope", with("rope", true, [](TransformerConfig&) {})});
  all.back().tiny.rotary_percent = 0.5;
  return all;
}

class GPTGradient : public ::testing::TestWithParam<Case> {};

// labels: GPTModel SelfAttention TransformerLayer MLP GPT.oracle
TEST_P(GPTGradient, LossAndEveryGradientEqualTheOracle) {
  const TinyGPT& tiny = GetParam().tiny;
  const std::shared_ptr<GPTModel> model = testing::build(tiny);
  Weights weights = testing::fill(*model);
  const Tensor sum = autograd::sum(testing::losses(*model));
  // fp32 through about 30 operations of reductions up to 32 long: 30·32·2^-24 = 6e-5 of a sum of 7
  // losses of about 3 at worst, and a tenth of that since errors are random.
  EXPECT_TRUE(testing::close({testing::GPTOracle(tiny, weights).loss_sum()},
                             testing::values_of(sum), 0.0, 1e-5));

  autograd::backward(sum);
  for (const auto& [name, parameter] : model->named_parameters()) {
    SCOPED_TRACE(name);
    const std::string key = name;
    const auto oracle = [&](const std::vector<std::vector<double>>& in) {
      weights[key] = in[0];
      return testing::GPTOracle(tiny, weights).loss_sum();
    };
    const std::vector<double> original = weights[key];
    ASSERT_TRUE(parameter->grad().defined());
    EXPECT_TRUE(testing::gradients_match(oracle, {original},
                                         {testing::values_of(parameter->grad())}, 2e-5, 1e-4));
    weights[key] = original;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GPTGradient, ::testing::ValuesIn(cases()),
                         [](const auto& entry) { return std::string(entry.param.name); });

}  // namespace
}  // namespace kitchen
