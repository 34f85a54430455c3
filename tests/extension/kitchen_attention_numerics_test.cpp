#include "kitchen/autograd/nn_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/modules/dot_product_attention.h"
#include "kitchen/modules/quantized_operand.h"
#include "ops_b/attention_oracle.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/golden_file.h"
#include "support/kitchen_attention.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kitchen {
namespace {

using testing::attention_inputs;
using testing::attention_recipe;
using testing::AttentionInputs;
using testing::AttentionOutputs;
using testing::close;
using testing::CoreSettings;
using testing::flash_recipe;
using testing::make_core;
using testing::run_core;
using testing::same_bits;
using testing::throws;
using testing::values_of;

using Entries = std::vector<std::string>;
using Sdpa = KitchenDotProductAttention;
using Flash = KitchenFlashAttention;

class KitchenAttentionNumerics : public testing::RankTest {
 protected:
  [[nodiscard]] Tensor mask_of(const Shape& shape, const std::vector<int>& values) const {
    const Tensor mask = Tensor::empty(context, shape, DType::boolean);
    std::copy(values.begin(), values.end(), static_cast<std::uint8_t*>(mask.raw_data()));
    return mask;
  }
  static void expect_equal(const AttentionOutputs& a, const AttentionOutputs& b) {
    EXPECT_TRUE(same_bits(a.out, b.out));
    EXPECT_TRUE(same_bits(a.dq, b.dq));
    EXPECT_TRUE(same_bits(a.dk, b.dk));
    EXPECT_TRUE(same_bits(a.dv, b.dv));
  }
  static void expect_within(const AttentionOutputs& a, const AttentionOutputs& b, double out, double dq,
                            double dk, double dv) {
    EXPECT_TRUE(close(a.out, b.out, out, 0.0));
    EXPECT_TRUE(close(a.dq, b.dq, dq, 0.0));
    EXPECT_TRUE(close(a.dk, b.dk, dk, 0.0));
    EXPECT_TRUE(close(a.dv, b.dv, dv, 0.0));
  }
  static testing::Heads heads(const Tensor& x, std::int64_t n, std::int64_t d) {
    return {x.dim(0), x.dim(1), n, d, values_of(x)};
  }
  static AttentionOutputs rows_of(const testing::OracleResult& r, const ContextPtr& context,
                                  const AttentionInputs& in) {
    const auto as = [&](const std::vector<double>& values, const Shape& shape) {
      return Tensor::from_vector(context, shape, std::vector<float>(values.begin(), values.end()));
    };
    return {as(r.o.values, in.dout.shape()), as(r.dq.values, in.q.shape()),
            as(r.dk.values, in.k.shape()), as(r.dv.values, in.v.shape())};
  }
};

CoreSettings public_setup() {
  CoreSettings s;
  s.heads = 8;
  s.groups = 8;
  s.head_size = 128;
  s.bf16 = true;
  s.softmax_scale = 0.23;
  return s;
}

// labels: KitchenDotProductAttention.forward KitchenFlashAttention.forward
TEST_F(KitchenAttentionNumerics, ThePublicLimitsHoldAtTheirSizes) {
  const CoreSettings s = public_setup();
  const AttentionInputs in = attention_inputs(context, s, 256, 4);
  const auto local = make_core<DotProductAttention>(s, attention_recipe(1));
  const AttentionOutputs unfused = run_core(*make_core<Sdpa>(s, attention_recipe(1)), in);
  expect_equal(run_core(*local, in), unfused);
  const auto natural = flash_recipe("triton_fa_bf16_for_all_natural");
  const AttentionOutputs null_part = run_core(*make_core<Sdpa>(s, natural), in);
  expect_equal(unfused, null_part);
  const AttentionOutputs flash = run_core(*make_core<Flash>(s, natural), in);
  expect_within(null_part, flash, 0.125, 0.25, 0.25, 0.125);
  const AttentionOutputs base_2 =
      run_core(*make_core<Flash>(s, flash_recipe("triton_fa_bf16_for_all_base_2")), in);
  expect_within(base_2, flash, 0.016, 0.07, 0.04, 0.01);  // another flash kernel's limits
}

// labels: KitchenDotProductAttention.forward KitchenFlashAttention.forward
TEST_F(KitchenAttentionNumerics, BothClassesAreWithinThePublicLimitsOfExactAttention) {
  CoreSettings s = public_setup();
  s.heads = s.groups = 2;
  AttentionInputs in = attention_inputs(context, s, 96, 1);
  // The limits are absolute; gradients of a normal dout reach 10, where half a bfloat16 step alone is 0.03.
  in.dout = ops::scale(in.dout, 0.125f);
  ops::FlashAttentionOptions options;
  options.scale = 0.23f;
  const AttentionOutputs exact = rows_of(
      attention_oracle(heads(in.q, 2, 128), heads(in.k, 2, 128), heads(in.v, 2, 128),
                       heads(in.dout, 2, 128), options),
      context, in);
  // The exact attention stands for the independent flash kernel of the table.
  const auto natural = flash_recipe("triton_fa_bf16_for_all_natural");
  const auto in_fp32 = [&](const AttentionOutputs& o) {
    return AttentionOutputs{ops::cast(o.out, DType::float32), ops::cast(o.dq, DType::float32),
                            ops::cast(o.dk, DType::float32), ops::cast(o.dv, DType::float32)};
  };
  expect_within(exact, in_fp32(run_core(*make_core<Flash>(s, natural), in)), 0.016, 0.07, 0.04, 0.01);
  expect_within(exact, in_fp32(run_core(*make_core<Sdpa>(s, attention_recipe(1)), in)), 0.0625, 0.1875,
                0.125, 0.05);
}

// labels: KitchenDotProductAttention.forward KitchenFlashAttention.forward A27
TEST_F(KitchenAttentionNumerics, InFloat32BothEqualTheOracleForOddSizesAndGroups) {
  struct Case {
    std::int64_t s, b, heads, groups, d;
  };
  // sq = 1; one head; an odd length; grouped queries; all groups in one.
  for (const Case& c : {Case{1, 2, 2, 2, 8}, Case{7, 1, 1, 1, 5}, Case{33, 2, 4, 2, 8},
                        Case{17, 1, 6, 1, 4}}) {
    CoreSettings s;
    s.heads = c.heads;
    s.groups = c.groups;
    s.head_size = c.d;
    const AttentionInputs in = attention_inputs(context, s, c.s, c.b);
    ops::FlashAttentionOptions options;
    options.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.d)));
    const testing::OracleResult r = attention_oracle(
        heads(in.q, c.heads, c.d), heads(in.k, c.groups, c.d), heads(in.v, c.groups, c.d),
        heads(in.dout, c.heads, c.d), options);
    const AttentionOutputs exact = rows_of(r, context, in);
    // Sums of at most 33·6 terms below 16 in fp32: 200·16·2^-24 = 2e-4 at worst, typically a tenth.
    for (const AttentionOutputs& got :
         {run_core(*make_core<Sdpa>(s, attention_recipe(1)), in),
          run_core(*make_core<Flash>(s, flash_recipe("triton_fa_bf16_for_all_base_2")), in)}) {
      EXPECT_EQ(got.out.shape(), (Shape{c.s, c.b, c.heads * c.d}));
      EXPECT_TRUE(got.out.is_contiguous());
      expect_within(exact, got, 1e-4, 1e-4, 1e-4, 1e-4);
    }
  }
}

// labels: KitchenDotProductAttention.forward KitchenFlashAttention.forward
TEST_F(KitchenAttentionNumerics, GroupedQueriesEqualExpandedHeadsWithSummedGradients) {
  CoreSettings grouped;
  grouped.heads = 4;
  const AttentionInputs in = attention_inputs(context, grouped, 9, 2);
  AttentionInputs expanded = in;
  const auto expand = [&](const Tensor& x) {
    const Tensor out = Tensor::empty(context, {9, 2, 4, 8}, DType::float32);
    for (std::int64_t h = 0; h < 4; ++h) ops::copy_into(x.slice(2, h / 2, 1), out.slice(2, h, 1));
    return out;
  };
  expanded.k = expand(in.k);
  expanded.v = expand(in.v);
  CoreSettings plain = grouped;
  plain.groups = 4;
  const auto check = [&](modules::ForwardAttention& one, modules::ForwardAttention& other) {
    const AttentionOutputs a = run_core(one, in);
    const AttentionOutputs b = run_core(other, expanded);
    EXPECT_TRUE(close(b.out, a.out, 1e-6, 1e-6));
    EXPECT_TRUE(close(b.dq, a.dq, 1e-6, 1e-6));
    for (std::int64_t g = 0; g < 2; ++g) {
      const Tensor dk = ops::add(ops::contiguous(b.dk.slice(2, 2 * g, 1)),
                                 ops::contiguous(b.dk.slice(2, 2 * g + 1, 1)));
      EXPECT_TRUE(close(dk, a.dk.slice(2, g, 1), 1e-5, 1e-5));
      const Tensor dv = ops::add(ops::contiguous(b.dv.slice(2, 2 * g, 1)),
                                 ops::contiguous(b.dv.slice(2, 2 * g + 1, 1)));
      EXPECT_TRUE(close(dv, a.dv.slice(2, g, 1), 1e-5, 1e-5));
    }
  };
  check(*make_core<Sdpa>(grouped, attention_recipe(1)), *make_core<Sdpa>(plain, attention_recipe(1)));
  const auto base_2 = flash_recipe("triton_fa_bf16_for_all_base_2");
  check(*make_core<Flash>(grouped, base_2), *make_core<Flash>(plain, base_2));
}

// labels: KitchenDotProductAttention.forward OperandCallLog recipe_6001
TEST_F(KitchenAttentionNumerics, TheCallLogShowsExactlyTheDocumentedOperands) {
  const AttentionInputs in = attention_inputs(context, {}, 5, 1);
  const auto core = make_core<Sdpa>({}, attention_recipe(6001, "layers.0.core"));
  modules::OperandCallLog log;
  const modules::OperandObserverScope scope(&log);
  (void)run_core(*core, in);
  Entries forward = log.entries();
  Entries backward(forward.begin() + 4, forward.end());
  forward.resize(4);
  EXPECT_EQ(forward, (Entries{"q/bmm1", "k/bmm1", "p/bmm2", "v/bmm2"}));
  EXPECT_EQ(backward, (Entries{"dO/bmm2_dp", "v/bmm2_dp", "dO/bmm2_dv", "p/bmm2_dv", "dS/bmm1_dq",
                               "k/bmm1_dq", "dS/bmm1_dk", "q/bmm1_dk"}));
  EXPECT_EQ(log.infos()[0].module, "layers.0.core");
  log.clear();
  (void)run_core(*make_core<Sdpa>({}, attention_recipe(1)), in);
  EXPECT_TRUE(log.entries().empty()) << "recipe 1 quantizes nothing";
}

// labels: KitchenDotProductAttention.forward golden.attention recipe_1 recipe_6001
TEST_F(KitchenAttentionNumerics, MatchesTheModelledOutputsOfTheGoldenFile) {
  const nlohmann::json& golden = testing::golden().at("attention");
  CoreSettings s;
  s.heads = s.groups = 1;
  s.head_size = golden.at("D");
  s.bf16 = true;
  const auto operand = [&](const char* name, const Shape& shape) {
    return testing::from_bits16(context, shape, DType::bfloat16, testing::hex16(golden.at(name)));
  };
  const Shape shape{golden.at("S"), 1, 1, golden.at("D")};
  const AttentionInputs in{operand("q", shape), operand("k", shape), operand("v", shape),
                           operand("do", {shape[0], 1, shape[3]})};
  int num_cases = 0;
  for (const nlohmann::json& entry : golden.at("cases")) {
    if (entry.at("kind") != "sdpa") continue;
    ++num_cases;
    const std::string name = entry.at("name");
    s.softmax_scale = testing::hex_floats(entry.at("softmax_scale"))[0];
    const AttentionOutputs got =
        run_core(*make_core<Sdpa>(s, testing::quantization("QAttentionRecipe", "recipe", name)), in);
    // numerics.md S8.5: a flipped rounding of S, P or dS gives 1e-5 in bf16, 1e-3 in fp8.
    const double bound = name == "bf16" ? 1e-5 : 1e-3;
    for (const auto& [output, tensor] : std::vector<std::pair<const char*, Tensor>>{
             {"o", got.out}, {"dq", got.dq}, {"dk", got.dk}, {"dv", got.dv}}) {
      const std::vector<float> modelled =
          testing::hex_floats(entry.at("outputs").at(output).at("f32"));
      EXPECT_TRUE(testing::error_below(std::vector<double>(modelled.begin(), modelled.end()),
                                       values_of(tensor), bound))
          << name << " " << output;
    }
  }
  EXPECT_EQ(num_cases, 3);
}

// labels: KitchenDotProductAttention.forward KitchenFlashAttention.forward D20
TEST_F(KitchenAttentionNumerics, LayerScalingCancels) {
  CoreSettings s;
  CoreSettings scaled;
  scaled.layer_scaling = true;
  scaled.layer_number = 4;  // a power of two: the scaled scores have the same bits
  s.softmax_scale = scaled.softmax_scale = 0.5;
  const AttentionInputs in = attention_inputs(context, s, 7, 2);
  expect_equal(run_core(*make_core<Sdpa>(s, attention_recipe(1)), in),
               run_core(*make_core<Sdpa>(scaled, attention_recipe(1)), in));
  const auto base_2 = flash_recipe("triton_fa_bf16_for_all_base_2");
  const auto flash = make_core<Flash>(scaled, base_2);
  EXPECT_EQ(flash->geometry.softmax_scale, 0.125) << "the attribute keeps the divided value";
  EXPECT_EQ(flash->flash_attention_module->options().softmax_scale, 0.5);
  expect_equal(run_core(*make_core<Flash>(s, base_2), in), run_core(*flash, in));
}

// labels: KitchenDotProductAttention.forward A03
TEST_F(KitchenAttentionNumerics, AFullyMaskedRowIsTheMeanOfV) {
  CoreSettings s;
  s.mask_type = AttnMaskType::padding;
  s.heads = s.groups = 1;
  const auto core = make_core<Sdpa>(s, attention_recipe(1));
  const AttentionInputs in = attention_inputs(context, s, 8, 1);
  std::vector<int> masked(64, 0);
  std::fill(masked.begin() + 32, masked.end(), 1);
  const AttentionOutputs got = run_core(*core, in, mask_of({1, 1, 8, 8}, masked));
  const AttentionOutputs open = run_core(*core, in);
  const std::vector<double> mean = [&] {
    std::vector<double> sums(8, 0.0);
    const std::vector<double> v = values_of(in.v);
    for (std::size_t i = 0; i < v.size(); ++i) sums[i % 8] += v[i] / 8.0;
    return sums;
  }();
  for (std::int64_t row = 0; row < 8; ++row) {
    const Tensor out = got.out.slice(0, row, 1);
    if (row >= 4) {
      EXPECT_TRUE(close(mean, values_of(out), 1e-6, 1e-6));
      EXPECT_EQ(values_of(got.dq.slice(0, row, 1)), (std::vector<double>(8, 0.0)));
    } else {
      EXPECT_TRUE(same_bits(open.out.slice(0, row, 1), out));
    }
  }
  for (const Tensor& gradient : {got.dk, got.dv}) {
    for (const double value : values_of(gradient)) EXPECT_TRUE(std::isfinite(value));
  }
}

// labels: KitchenDotProductAttention.forward A03
TEST_F(KitchenAttentionNumerics, WithMinusInfinityAFullyMaskedRowIsZero) {
  CoreSettings s;
  s.mask_type = AttnMaskType::padding;
  s.heads = s.groups = 1;
  const auto core = make_core<DotProductAttention>(s, attention_recipe(1));
  core->scale_mask_softmax->masked_value = -std::numeric_limits<float>::infinity();
  const AttentionInputs in = attention_inputs(context, s, 8, 1);
  std::vector<int> masked(64, 0);
  std::fill(masked.begin() + 32, masked.end(), 1);
  const AttentionOutputs got = run_core(*core, in, mask_of({1, 1, 8, 8}, masked));
  EXPECT_EQ(values_of(got.out.slice(0, 4, 4)), (std::vector<double>(32, 0.0)));
  EXPECT_EQ(values_of(got.dq.slice(0, 4, 4)), (std::vector<double>(32, 0.0)));
  for (const Tensor& gradient : {got.dk, got.dv}) {
    for (const double value : values_of(gradient)) EXPECT_TRUE(std::isfinite(value));
  }
}

// labels: KitchenDotProductAttention.forward A05
TEST_F(KitchenAttentionNumerics, ANaNUnderABooleanMaskPropagates) {
  CoreSettings s;
  s.heads = s.groups = 1;
  s.head_size = 4;
  s.mask_type = AttnMaskType::padding;
  AttentionInputs in = attention_inputs(context, s, 2, 1);
  ops::fill_inplace(in.v.slice(0, 1, 1), std::numeric_limits<float>::quiet_NaN());
  const autograd::NoGradGuard guard;
  const auto core = make_core<Sdpa>(s, attention_recipe(1));
  const Tensor out = core->forward(in.q, in.k, in.v, mask_of({1, 1, 1, 2}, {0, 1}));
  for (const double value : values_of(out)) EXPECT_TRUE(std::isnan(value));  // 0 · NaN
}

// labels: KitchenDotProductAttention.forward D22
TEST_F(KitchenAttentionNumerics, TheConstructorsMaskTypeGoverns) {
  CoreSettings s;
  const AttentionInputs in = attention_inputs(context, s, 5, 2);
  const auto causal = make_core<Sdpa>(s, attention_recipe(1));
  s.mask_type = AttnMaskType::no_mask;
  const auto open = make_core<Sdpa>(s, attention_recipe(1));
  const autograd::NoGradGuard guard;
  const Tensor plain = causal->forward(in.q, in.k, in.v, {});
  EXPECT_TRUE(same_bits(plain, causal->forward(in.q, in.k, in.v, {}, AttnMaskType::no_mask)));
  EXPECT_FALSE(same_bits(plain, open->forward(in.q, in.k, in.v, {}, AttnMaskType::causal)));
  // The same mask as a tensor, broadcast over batch and heads, gives the same bits.
  std::vector<int> future(25, 0);
  for (std::size_t i = 0; i < 25; ++i) future[i] = i % 5 > i / 5 ? 1 : 0;
  const Tensor mask = mask_of({1, 1, 5, 5}, future);
  EXPECT_TRUE(same_bits(plain, causal->forward(in.q, in.k, in.v, mask)));
  EXPECT_TRUE(same_bits(plain, open->forward(in.q, in.k, in.v, mask)));
  // More keys than queries: legal without a generated mask.
  const Tensor one = in.q.slice(0, 4, 1);
  EXPECT_EQ(causal->forward(one, in.k, in.v, {}).shape(), (Shape{1, 2, 16}));
  EXPECT_EQ(open->forward(in.q.slice(0, 0, 3), in.k, in.v, {}).shape(), (Shape{3, 2, 16}));
}

// labels: KitchenDotProductAttention.forward RngTracker
TEST_F(KitchenAttentionNumerics, DropoutDrawsFromTheTrackersState) {
  CoreSettings s;
  s.dropout = 0.5;
  const AttentionInputs in = attention_inputs(context, s, 16, 1);
  const auto core = make_core<Sdpa>(s, attention_recipe(1));
  const auto run_as = [&](int tp_rank) {
    model_parallel_cuda_manual_seed(7, tp_rank);
    return run_core(*core, in);
  };
  const AttentionOutputs rank0 = run_as(0);
  EXPECT_EQ(get_cuda_rng_tracker().get_states().at("model-parallel-rng").offset, 1u);
  EXPECT_EQ(default_generator(), (GeneratorState{7, 0})) << "the default state is untouched";
  EXPECT_FALSE(same_bits(rank0.out, run_as(1).out)) << "ranks draw different masks";
  expect_equal(rank0, run_as(0));
  core->config->sequence_parallel = true;
  const AttentionOutputs sp0 = run_as(0);
  EXPECT_EQ(default_generator().offset, 1u);
  EXPECT_TRUE(same_bits(sp0.out, run_as(1).out)) << "the current default state";
  core->config->sequence_parallel = false;
  core->eval();
  model_parallel_cuda_manual_seed(7);
  s.dropout = 0.0;
  expect_equal(run_core(*make_core<Sdpa>(s, attention_recipe(1)), in), run_core(*core, in));
}

// labels: KitchenDotProductAttention.forward RngTracker
TEST_F(KitchenAttentionNumerics, AnUnseededTrackerIsAnErrorEvenWithoutDropout) {
  const auto core = make_core<Sdpa>({}, attention_recipe(1));
  core->eval();
  get_cuda_rng_tracker().reset();
  const Tensor x = tensor({2, 1, 2, 8}, 1);
  EXPECT_TRUE(throws<RuntimeError>([&] { (void)core->forward(x, x, x, {}); }, {"is not added"}));
}

// labels: KitchenDotProductAttention.forward
TEST_F(KitchenAttentionNumerics, GradientsOffGiveTheSameOutput) {
  for (const std::int64_t recipe : {1, 6001}) {
    const auto core = make_core<Sdpa>({}, attention_recipe(recipe));
    const AttentionInputs in = attention_inputs(context, {}, 7, 2);
    const Tensor on = run_core(*core, in).out;
    const autograd::NoGradGuard guard;
    const Tensor off = core->forward(in.q, in.k, in.v, {});
    EXPECT_FALSE(off.requires_grad());
    EXPECT_TRUE(same_bits(on, off));
  }
}

// labels: KitchenFlashAttention.forward KitchenDotProductAttention.forward A11 recipe_1 recipe_6001
TEST_F(KitchenAttentionNumerics, TheFutureReachesAnOutputThroughScalesOnly) {
  CoreSettings s;
  s.bf16 = true;
  AttentionInputs in = attention_inputs(context, s, 64, 1);
  AttentionInputs changed = in;
  changed.v = ops::scale(in.v, 1.0f);  // a copy
  ops::fill_inplace(changed.v.slice(0, 40, 1), 1000.0f);
  /// Tokens before 40 whose outputs keep their bits when the value of token 40 changes.
  const auto unchanged = [&](modules::ForwardAttention& core) {
    const autograd::NoGradGuard guard;
    const Tensor before = core.forward(in.q, in.k, in.v, {});
    const Tensor after = core.forward(changed.q, changed.k, changed.v, {});
    EXPECT_FALSE(same_bits(before.slice(0, 40, 1), after.slice(0, 40, 1)));
    std::int64_t count = 0;
    while (count < 40 && same_bits(before.slice(0, count, 1), after.slice(0, count, 1))) ++count;
    return count;
  };
  const auto unfused = [&](const char* name) {
    return make_core<Sdpa>(s, testing::quantization("QAttentionRecipe", "recipe", name));
  };
  for (const char* name : {"triton_fa_bf16_for_all_base_2", "triton_fa_bf16_for_all_natural"}) {
    EXPECT_EQ(unchanged(*make_core<Flash>(s, flash_recipe(name))), 40) << name;
  }
  EXPECT_EQ(unchanged(*unfused("bf16")), 40);
  // One scale a head sees all tokens; a block of 32 of V sees tokens 32 to 63.
  EXPECT_LT(unchanged(*make_core<Flash>(s, flash_recipe("fa_fp8_e4m3_base_2"))), 32);
  EXPECT_LT(unchanged(*unfused("fp8_cs")), 32);
  EXPECT_EQ(unchanged(*unfused("mxfp8_emulation")), 32);
}

}  // namespace
}  // namespace kitchen
