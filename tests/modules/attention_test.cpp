#include "kitchen/autograd/backward.h"
#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/modules/dot_product_attention.h"
#include "kitchen/modules/kitchen_flash_attention_module.h"
#include "kitchen/modules/quantized_bmm.h"
#include "kitchen/modules/quantized_operand.h"
#include "kitchen/ops/quantize.h"
#include "kitchen/recipes/predefined.h"
#include "ops_b/attention_oracle.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/layers.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kitchen {
namespace {

using testing::close;
using testing::same_bits;
using testing::throws;
using testing::values_of;

class AttentionModules : public testing::RankTest {
 protected:
  static FusedScaleMaskSoftmax softmax_of(AttnMaskType type, bool fusion = false) {
    return {false, true, type, fusion, true, std::nullopt};
  }
  [[nodiscard]] Tensor mask_of(const Shape& shape, const std::vector<std::uint8_t>& values) const {
    const Tensor mask = Tensor::empty(context, shape, DType::boolean);
    std::copy(values.begin(), values.end(), static_cast<std::uint8_t*>(mask.raw_data()));
    return mask;
  }
};

// labels: FusedScaleMaskSoftmax
TEST_F(AttentionModules, MaskTypeDecidesWithoutAMask) {
  const Tensor scores = tensor({1, 2, 3, 3}, 1);
  FusedScaleMaskSoftmax causal = softmax_of(AttnMaskType::causal);
  const std::vector<double> p = values_of(causal.forward(scores, {}));
  EXPECT_EQ(p[0], 1.0);
  EXPECT_EQ(p[1], 0.0);
  EXPECT_GT(p[3], 0.0);
  EXPECT_EQ(p[5], 0.0);
  for (const auto type : {AttnMaskType::padding, AttnMaskType::no_mask}) {
    FusedScaleMaskSoftmax free = softmax_of(type);
    for (const double value : values_of(free.forward(scores, {}))) EXPECT_GT(value, 0.0);
  }
  EXPECT_EQ(values_of(causal.forward(tensor({1, 1, 1, 1}, 1), {})), (std::vector<double>{1.0}));
  EXPECT_GT(values_of(causal.forward(tensor({1, 1, 1, 3}, 1), {}))[2], 0.0);  // sq = 1: no mask
  EXPECT_TRUE(throws<AssertionError>([&] { (void)causal.forward(tensor({1, 1, 2, 3}, 1), {}); },
                                     {"causal mask is only for self attention", "2", "3"}));
}

// labels: FusedScaleMaskSoftmax
TEST_F(AttentionModules, TheFusedPathOfACausalLayerIgnoresTheUsersMask) {
  const Shape shape{1, 4, 20, 20};
  const Tensor scores = tensor(shape, 1, DType::bfloat16);
  const Tensor all_seen = mask_of({1, 1, 1, 20}, std::vector<std::uint8_t>(20, 0));
  FusedScaleMaskSoftmax unfused = softmax_of(AttnMaskType::causal);
  FusedScaleMaskSoftmax fused = softmax_of(AttnMaskType::causal, true);
  const Tensor causal = unfused.forward(scores, {});
  const Tensor open = unfused.forward(scores, all_seen);
  EXPECT_FALSE(same_bits(causal, open));
  EXPECT_TRUE(same_bits(causal, fused.forward(scores, all_seen)));
  EXPECT_TRUE(same_bits(causal, fused.forward(scores, {})));
  // Where the fused kernel would not run, the mask counts: float32 scores, sk <= 16, a size not of 4.
  const auto honours = [&](const Tensor& other) {
    const Tensor seen =
        mask_of({1, 1, 1, other.dim(3)}, std::vector<std::uint8_t>(static_cast<std::size_t>(other.dim(3)), 0));
    return same_bits(unfused.forward(other, seen), fused.forward(other, seen));
  };
  EXPECT_TRUE(honours(tensor(shape, 1)));
  EXPECT_TRUE(honours(tensor({1, 4, 16, 16}, 1, DType::bfloat16)));
  EXPECT_TRUE(honours(tensor({1, 4, 18, 20}, 1, DType::bfloat16)));
  EXPECT_TRUE(honours(tensor({1, 3, 20, 20}, 1, DType::bfloat16)));
}

// labels: FusedScaleMaskSoftmax
TEST_F(AttentionModules, SoftmaxRefusesContradictions) {
  EXPECT_TRUE(throws<AssertionError>(
      [] { FusedScaleMaskSoftmax(true, true, AttnMaskType::causal, false, true, {}); },
      {"fp16", "bf16"}));
  EXPECT_TRUE(throws<AssertionError>(
      [] { FusedScaleMaskSoftmax(false, true, AttnMaskType::causal, false, false, 2.0); },
      {"attention_softmax_in_fp32"}));
}

// labels: FusedScaleMaskSoftmax A03
TEST_F(AttentionModules, FullyMaskedRowsAreUniformOrZero) {
  std::vector<std::uint8_t> masked(64, 0);
  std::fill(masked.begin() + 32, masked.end(), std::uint8_t{1});  // rows 4-7
  const Tensor mask = mask_of({1, 1, 8, 8}, masked);
  FusedScaleMaskSoftmax softmax = softmax_of(AttnMaskType::padding);
  for (const float value : {-10000.0f, -INFINITY}) {
    softmax.masked_value = value;
    const Tensor scores = leaf({1, 1, 8, 8}, 1);
    const Tensor probs = softmax.forward(scores, mask);
    const std::vector<double> p = values_of(probs.detach());
    for (std::size_t i = 32; i < 64; ++i) EXPECT_EQ(p[i], value == -10000.0f ? 0.125 : 0.0);
    autograd::backward(probs, tensor({1, 1, 8, 8}, 2));
    const std::vector<double> d = values_of(autograd::grad_of(scores));
    for (std::size_t i = 32; i < 64; ++i) EXPECT_EQ(d[i], 0.0);
    EXPECT_NE(d[0], 0.0);
  }
}

// labels: DotProductAttention
TEST_F(AttentionModules, UnfusedAttentionEqualsTheOracle) {
  TransformerConfig config = testing::small_transformer();
  config.num_query_groups = 2;
  config.kv_channels = 8;
  DotProductAttention core(make_config(config), 1, AttnMaskType::causal, "self");
  for (const std::int64_t s : {1, 5, 17}) {
    const Tensor q = leaf({s, 2, 4, 8}, 1);
    const Tensor k = leaf({s, 2, 2, 8}, 2);
    const Tensor v = leaf({s, 2, 2, 8}, 3);
    const Tensor dout = tensor({s, 2, 32}, 4);
    const Tensor out = core.forward(q, k, v, {});
    autograd::backward(out, dout);
    ops::FlashAttentionOptions options;
    options.scale = static_cast<float>(1.0 / std::sqrt(8.0));
    const auto heads = [&](const Tensor& x, std::int64_t n) {
      return testing::Heads{s, 2, n, 8, values_of(x.detach())};
    };
    const testing::OracleResult r =
        attention_oracle(heads(q, 4), heads(k, 2), heads(v, 2), heads(dout, 4), options);
    // fp32 throughout, sums of at most 17·2·8 terms below 1: 300·2^-24 < 2e-5.
    EXPECT_TRUE(close(r.o.values, values_of(out.detach()), 2e-5, 2e-5));
    EXPECT_TRUE(close(r.dq.values, values_of(autograd::grad_of(q)), 2e-5, 2e-5));
    EXPECT_TRUE(close(r.dk.values, values_of(autograd::grad_of(k)), 2e-5, 2e-5));
    EXPECT_TRUE(close(r.dv.values, values_of(autograd::grad_of(v)), 2e-5, 2e-5));
  }
}

// labels: modules.KitchenFlashAttentionModule
TEST_F(AttentionModules, FlashModuleEqualsTheOracleWithAndWithoutAWindow) {
  modules::FlashAttentionModuleOptions options;
  options.softmax_scale = 0.25;
  ops::FlashAttentionOptions exact;
  exact.scale = 0.25f;
  for (const bool windowed : {false, true}) {
    if (windowed) {
      options.window_size = {2, 0};
      exact.window = {2, 0};
    }
    modules::KitchenFlashAttentionModule core(options);
    const Tensor q = tensor({9, 1, 2, 4}, 1);
    const Tensor k = tensor({9, 1, 1, 4}, 2);
    const Tensor v = tensor({9, 1, 1, 4}, 3);
    const testing::Heads hq{9, 1, 2, 4, values_of(q)};
    const testing::OracleResult r = attention_oracle(hq, {9, 1, 1, 4, values_of(k)},
                                                     {9, 1, 1, 4, values_of(v)}, hq, exact);
    const Tensor out = core.forward(q, k, v);
    EXPECT_EQ(out.shape(), (Shape{9, 1, 8}));
    EXPECT_TRUE(close(r.o.values, values_of(out), 1e-6, 1e-6));
  }
}

// labels: modules.KitchenFlashAttentionModule A25
TEST_F(AttentionModules, FlashModuleTellsOnceOfFloat32) {
  modules::KitchenFlashAttentionModule core({});
  const Tensor x = tensor({3, 1, 1, 4}, 1);
  const LogCapture log;
  (void)core.forward(x, x, x);
  (void)core.forward(x, x, x);
  EXPECT_EQ(log.count(LogLevel::info, "float32"), 1);
  const Tensor half = tensor({3, 1, 1, 4}, 1, DType::bfloat16);
  (void)modules::KitchenFlashAttentionModule({}).forward(half, half, half);
  EXPECT_EQ(log.count(LogLevel::info, "float32"), 1);
  EXPECT_TRUE(throws<TypeError>([&] { (void)core.forward(half, x, x); }, {"k", "float32"}));
}

// labels: modules.KitchenFlashAttentionModule D25
TEST_F(AttentionModules, FlashModuleRefusesWhatItsKernelDoesNotDo) {
  modules::FlashAttentionModuleOptions options;
  options.attention_dropout = 0.1;
  EXPECT_TRUE(throws<NotImplementedError>([&] { modules::KitchenFlashAttentionModule core(options); },
                                          {"attention_dropout", "0.1"}));
  options.attention_dropout = 0.0;
  options.qkv_format = "thd";
  EXPECT_TRUE(throws<NotImplementedError>([&] { modules::KitchenFlashAttentionModule core(options); },
                                          {"thd"}));
  options.qkv_format = "sbhd";
  const auto refuses = [&](const QFlashAttentionParams& params, const char* dot, const char* found) {
    options.qfa_params = std::make_shared<const QFlashAttentionParams>(params);
    return throws<NotImplementedError>([&] { modules::KitchenFlashAttentionModule core(options); },
                                       {dot, found, "fa_fp8_e4m3_base_2"});
  };
  QFlashAttentionParams fp8 = *get_qfa_params_from_recipe_name("fa_fp8_e4m3_base_2");
  fp8.dv_dot_precisions = "bf16@bf16";
  EXPECT_TRUE(refuses(fp8, "dv_dot_precisions", "bf16@bf16"));
  QFlashAttentionParams mixed;
  mixed.dk_dot_precisions = "e5m2@e4m3";
  EXPECT_TRUE(refuses(mixed, "dk_dot_precisions", "e5m2@e4m3"));
}

// labels: modules.KitchenFlashAttentionModule modules.fp8_flash_attention OperandCallLog
TEST_F(AttentionModules, Fp8FlashQuantizesEachOperandOnceWithAScaleForEachHead) {
  struct Log : modules::OperandObserver {
    std::vector<std::string> seen;
    void on_quantized(const modules::OperandInfo& info, const Tensor& /*source*/,
                      const QuantizedMatrix& q) override {
      seen.push_back(info.module + " " + info.operand + "/" + info.product + " " +
                     to_string(q.codes.dtype()) + " " + to_string(q.scale_inv.shape()));
    }
  } log;
  modules::FlashAttentionModuleOptions options;
  options.qfa_params = get_qfa_params_from_recipe_name("fa_fp8_e4m3_base_2");
  options.module = "core";
  modules::KitchenFlashAttentionModule core(options);
  const modules::OperandObserverScope scope(&log);
  const Tensor q = leaf({5, 2, 4, 8}, 1);
  const Tensor k = leaf({5, 2, 2, 8}, 2);
  const Tensor v = leaf({5, 2, 2, 8}, 3);
  autograd::backward(core.forward(q, k, v), tensor({5, 2, 32}, 4));
  // Two batch indices; query heads keep their own scales though they share keys.
  EXPECT_EQ(log.seen, (std::vector<std::string>{"core q/qk float8_e4m3 [2, 4, 1, 1]",
                                                "core k/qk float8_e4m3 [2, 2, 1, 1]",
                                                "core v/pv float8_e4m3 [2, 2, 1, 1]",
                                                "core dO/dp float8_e5m2 [2, 4, 1, 1]"}));
  EXPECT_EQ(autograd::grad_of(q).shape(), q.shape());
  EXPECT_EQ(autograd::grad_of(k).shape(), k.shape());
}

// labels: QuantizedBMM recipe_1 recipe_6001
TEST_F(AttentionModules, ProductsOfEveryRecipeEqualThoseOfTheDequantizedOperands) {
  struct Captured : modules::OperandObserver {
    std::vector<Tensor> operands;
    void on_quantized(const modules::OperandInfo& /*info*/, const Tensor& /*source*/,
                      const QuantizedMatrix& q) override {
      operands.push_back(ops::dequantize(q, DType::float32));
    }
  };
  /// alpha·x·yᵀ in fp64, x [2, m, r], y [2, n, r].
  const auto product = [](const Tensor& x, const Tensor& y, double alpha) {
    std::vector<double> out;
    const std::vector<double> a = values_of(x);
    const std::vector<double> b = values_of(y);
    const auto m = static_cast<std::size_t>(x.dim(1));
    const auto n = static_cast<std::size_t>(y.dim(1));
    const auto r = static_cast<std::size_t>(x.dim(2));
    for (std::size_t row = 0; row < 2 * m; ++row) {
      for (std::size_t col = 0; col < n; ++col) {
        double sum = 0.0;
        const std::size_t other = row / m * n + col;
        for (std::size_t i = 0; i < r; ++i) sum += a[row * r + i] * b[other * r + i];
        out.push_back(alpha * sum);
      }
    }
    return out;
  };
  for (const auto& recipe : predefined_attention_recipes()) {
    for (const bool is_bmm2 : {false, true}) {
      SCOPED_TRACE(recipe->name);
      Captured log;
      const modules::OperandObserverScope scope(&log);
      const Tensor a = leaf({2, 33, 37}, 1);
      const Tensor b = leaf({2, 37, 41}, 2);
      const Tensor g = tensor({2, 33, 41}, 3);
      const Tensor out = QuantizedBMM::apply(a, b, 0.25f, is_bmm2, true, 1, recipe);
      autograd::backward(out, g);
      std::vector<Tensor> x = log.operands;
      if (x.empty()) {  // Recipe 1 keeps the operands as they are.
        const Tensor p = a.detach();
        const Tensor q = b.detach();
        x = {p, q.transpose(1, 2), g, q, g.transpose(1, 2), p.transpose(1, 2)};
      }
      ASSERT_EQ(x.size(), 6u);
      // 41 fp32 additions of terms below 4 in size: 41·41·4·2^-24 < 5e-4.
      EXPECT_TRUE(close(product(x[0], x[1], 0.25), values_of(out.detach()), 5e-4, 0.0));
      EXPECT_TRUE(close(product(x[2], x[3], 0.25), values_of(autograd::grad_of(a)), 5e-4, 0.0));
      const Tensor db = autograd::grad_of(b).transpose(1, 2);
      EXPECT_TRUE(close(product(x[4], x[5], 0.25), values_of(db), 5e-4, 0.0));
    }
  }
}

// labels: QuantizedBMM OperandCallLog
TEST_F(AttentionModules, BmmQuantizesTheDocumentedOperandsAlongTheirReduction) {
  struct Shapes : modules::OperandObserver {
    std::vector<std::string> seen;
    void on_quantized(const modules::OperandInfo& info, const Tensor& source,
                      const QuantizedMatrix& /*q*/) override {
      seen.push_back(info.operand + to_string(source.shape()));
    }
  } shapes;
  const auto params = get_qattention_params_from_qat_params(6001);
  const modules::OperandObserverScope scope(&shapes);
  // B = 2, sq = 3, sk = 5, hn = 4
  const Tensor q = leaf({2, 3, 4}, 1);
  const Tensor k_transposed = leaf({2, 4, 5}, 2);
  const Tensor s = QuantizedBMM::apply(q, k_transposed, 0.5f, false, true, 1, params);
  EXPECT_EQ(shapes.seen, (std::vector<std::string>{"q[2, 3, 4]", "k[2, 5, 4]"}));
  shapes.seen.clear();
  autograd::backward(s, tensor({2, 3, 5}, 3));
  EXPECT_EQ(shapes.seen, (std::vector<std::string>{"dS[2, 3, 5]", "k[2, 4, 5]",     // along sk
                                                   "dS[2, 5, 3]", "q[2, 4, 3]"}));  // along sq
  shapes.seen.clear();
  const Tensor p = leaf({2, 3, 5}, 4);
  const Tensor v = leaf({2, 5, 4}, 5);
  const Tensor c = QuantizedBMM::apply(p, v, 1.0f, true, true, 1, params);
  EXPECT_EQ(shapes.seen, (std::vector<std::string>{"p[2, 3, 5]", "v[2, 4, 5]"}));
  shapes.seen.clear();
  autograd::backward(c, tensor({2, 3, 4}, 6));
  EXPECT_EQ(shapes.seen, (std::vector<std::string>{"dO[2, 3, 4]", "v[2, 5, 4]",     // along hn
                                                   "dO[2, 4, 3]", "p[2, 5, 3]"}));  // along sq
}

// labels: QuantizedBMM QAttentionParams
TEST_F(AttentionModules, EachProductTakesItsOwnQuantizer) {
  struct Formats : modules::OperandObserver {
    std::vector<std::string> seen;
    void on_quantized(const modules::OperandInfo& info, const Tensor& /*source*/,
                      const QuantizedMatrix& q) override {
      seen.push_back(info.operand + " " + to_string(q.codes.dtype()) + " " +
                     to_string(q.spec.granularity));
    }
  } formats;
  QAttentionParams mixed = *get_qattention_params_from_recipe_name("fp8_cs");
  mixed.quantizer_bmm2 = get_qattention_params_from_recipe_name("mxfp8_emulation")->quantizer_bmm2;
  const auto params = std::make_shared<const QAttentionParams>(mixed);
  const modules::OperandObserverScope scope(&formats);
  const Tensor a = leaf({1, 2, 3}, 1);
  const Tensor b = leaf({1, 3, 2}, 2);
  autograd::backward(QuantizedBMM::apply(a, b, 1.0f, false, true, 1, params), tensor({1, 2, 2}, 3));
  EXPECT_EQ(formats.seen[0], "q float8_e4m3 per_tensor");
  EXPECT_EQ(formats.seen[2], "dS float8_e5m2 per_tensor");  // the gradient's own format
  formats.seen.clear();
  (void)QuantizedBMM::apply(a, b, 1.0f, true, true, 1, params);
  EXPECT_EQ(formats.seen[0], "p float8_e4m3 1x32");
}

// labels: QuantizedBMM
TEST_F(AttentionModules, BmmRecordsNothingWithGradientsOff) {
  const Tensor a = leaf({1, 2, 3}, 1);
  const Tensor b = leaf({1, 3, 2}, 2);
  const auto params = get_qattention_params_from_qat_params(6001);
  const Tensor off = QuantizedBMM::apply(a, b, 1.0f, false, false, 1, params);
  const Tensor on = QuantizedBMM::apply(a, b, 1.0f, false, true, 1, params);
  EXPECT_FALSE(off.requires_grad());
  EXPECT_TRUE(same_bits(on.detach(), off));
  const autograd::NoGradGuard guard;
  EXPECT_FALSE(QuantizedBMM::apply(a, b, 1.0f, false, true, 1, params).requires_grad());
}

// labels: OperandCallLog
TEST_F(AttentionModules, ObserversNestAndUnquantizedOperandsAreNotSeen) {
  modules::OperandCallLog outer;
  modules::OperandCallLog inner;
  const auto params = get_qlinear_params_from_qat_params(2);
  const Tensor x = tensor({2, 4}, 1);
  const modules::OperandObserverScope outer_scope(&outer);
  {
    const modules::OperandObserverScope inner_scope(&inner);
    (void)modules::make_operand(x, params->x_params, params->mm_fprop, false, {"m", "x", "fprop"});
  }
  (void)modules::make_operand(x, params->w_params, params->mm_fprop, false, {"m", "w", "fprop"});
  (void)modules::make_operand(x, params->w_params, MatmulParams{}, false, {"m", "w", "dgrad"});
  EXPECT_EQ(inner.entries(), (std::vector<std::string>{"x/fprop"}));
  EXPECT_EQ(outer.entries(), (std::vector<std::string>{"w/fprop"}));
  EXPECT_EQ(outer.infos()[0].module, "m");
  outer.clear();
  EXPECT_TRUE(outer.entries().empty());
  modules::Operand codes =
      modules::make_operand(x, params->x_params, params->mm_fprop, false, {"m", "x", "fprop"});
  modules::Operand plain;
  plain.high_precision = x;
  EXPECT_TRUE(throws<ValueError>(
      [&] { (void)modules::operand_gemm(codes, plain, DType::float32, params->mm_fprop); },
      {"both or none"}));
}

}  // namespace
}  // namespace kitchen
