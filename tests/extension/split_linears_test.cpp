#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/math_functions.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/parallel/collective_recorder.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/kitchen_layers.h"
#include "support/ranks.h"

#include <gtest/gtest.h>

#include <map>

namespace kitchen {
namespace {

using testing::close;
using testing::on_ranks;
using testing::throws;
using testing::tp_group;

constexpr std::int64_t kSequence = 8;
constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kIn = 12;
constexpr std::int64_t kOut = 8;

using Lines = std::vector<std::string>;
using Tensors = std::map<std::string, Tensor>;

enum class Kind { column, row, layer_norm };

/// A whole tensor, the same on each rank.
Tensor whole(const Shape& shape, std::uint64_t seed) {
  std::vector<double> values = testing::grid_values(num_elements(shape), seed);
  for (double& value : values) value /= 8.0;
  return testing::tensor_of(default_context(), shape, DType::float32, values);
}

/// This rank's part of `x` along `dim`; all of it for dim -1.
Tensor part(const Tensor& x, int dim) {
  if (dim < 0) return x;
  const std::int64_t size = x.dim(dim) / tp_group()->size();
  return ops::contiguous(x.detach().slice(dim, tp_group()->rank() * size, size));
}

struct Split {
  Kind kind;
  bool sequence_parallel;

  [[nodiscard]] int x_dim() const { return kind == Kind::row ? 2 : sequence_parallel ? 0 : -1; }
  [[nodiscard]] int y_dim() const { return kind != Kind::row ? 2 : sequence_parallel ? 0 : -1; }
  [[nodiscard]] int weight_dim() const { return kind == Kind::row ? 1 : 0; }
  [[nodiscard]] int bias_dim() const { return kind == Kind::row ? -1 : 0; }
};

std::shared_ptr<modules::Linear> make_layer(const Split& split, bool skip_bias_add) {
  TransformerConfig config = testing::small_transformer();
  config.tensor_model_parallel_size = tp_group()->size();
  config.sequence_parallel = split.sequence_parallel && tp_group()->size() > 1;
  const auto shared = make_config(config);
  const auto finish = [](auto layer) {
    layer->finish_init(testing::linear_recipe(1));
    return layer;
  };
  if (split.kind == Kind::row) {
    RowParallelLinearArgs args = testing::row_args(shared);
    args.skip_bias_add = skip_bias_add;
    return finish(std::make_shared<KitchenRowParallelLinear>(kIn, kOut, args));
  }
  if (split.kind == Kind::column) {
    ColumnParallelLinearArgs args = testing::column_args(shared);
    args.skip_bias_add = skip_bias_add;
    return finish(std::make_shared<KitchenColumnParallelLinear>(kIn, kOut, args));
  }
  LayerNormColumnParallelLinearArgs args = testing::layer_norm_args(shared);
  args.skip_bias_add = skip_bias_add;
  return finish(std::make_shared<KitchenLayerNormColumnParallelLinear>(kIn, kOut, args));
}

/// Forward and backward on this rank's parts of one whole problem.
Tensors run(const Split& split, bool x_wants_grad = true, bool weight_wants_grad = true) {
  const auto layer = make_layer(split, false);
  ops::copy_into(part(whole({kOut}, 3), split.bias_dim()), layer->bias.detach());
  for (const auto& [name, parameter] : layer->named_parameters()) {
    if (name.rfind("layer_norm", 0) == 0) ops::copy_into(whole({kIn}, 4), parameter->detach());
  }
  const Tensor x = part(whole({kSequence, kBatch, kIn}, 1), split.x_dim());
  if (x_wants_grad) autograd::set_requires_grad(x);
  if (!weight_wants_grad) autograd::set_requires_grad(layer->weight, false);
  const Tensor y = dynamic_cast<modules::ForwardLinear&>(*layer).forward(x).first;
  Tensors result{{"y", y.detach()}};
  autograd::backward(y, part(whole({kSequence, kBatch, kOut}, 2), split.y_dim()));
  if (x_wants_grad) result["dx"] = autograd::grad_of(x);
  for (const auto& [name, parameter] : layer->named_parameters()) {
    const Tensor grad = autograd::grad_of(*parameter);
    if (!grad.defined()) continue;
    // Partial sums, by the parameter's attribute.
    result["d " + name] = parameter->sequence_parallel ? tp_group()->all_reduce(grad) : grad;
  }
  return result;
}

/// What one rank computes, as host values: contexts belong to their rank.
std::map<std::string, std::pair<Shape, std::vector<float>>> run_whole(const Split& split) {
  std::map<std::string, std::pair<Shape, std::vector<float>>> values;
  on_ranks(1, [&](int) {
    for (const auto& [name, tensor] : run(split)) {
      values[name] = {tensor.shape(), tensor.to_vector<float>()};
    }
  });
  return values;
}

void expect_equal_to_one_rank(const Split& split) {
  const auto expected = run_whole(split);
  const std::map<std::string, int> dims{
      {"y", split.y_dim()},         {"dx", split.x_dim()},       {"d weight", split.weight_dim()},
      {"d bias", split.bias_dim()}, {"d layer_norm_weight", -1}, {"d layer_norm_bias", -1}};
  ASSERT_EQ(expected.size(), split.kind == Kind::layer_norm ? 6u : 4u);
  for (const int p : {2, 4}) {
    on_ranks(p, [&](int) {
      for (const auto& [name, actual] : run(split)) {
        const auto& [shape, values] = expected.at(name);
        const Tensor all = Tensor::from_vector(default_context(), shape, values);
        // fp32 sums of at most 24 terms below 8 in another order: 24 · 2^-24 · 24 · 8.
        EXPECT_TRUE(close(part(all, dims.at(name)), actual, 3e-4, 1e-5)) << name << " on " << p;
      }
    });
  }
}

// labels: threads KitchenColumnParallelLinear
TEST(SplitLinears, ColumnEqualsOneRank) {
  for (const bool sp : {false, true}) expect_equal_to_one_rank({Kind::column, sp});
}

// labels: threads KitchenRowParallelLinear
TEST(SplitLinears, RowEqualsOneRank) {
  for (const bool sp : {false, true}) expect_equal_to_one_rank({Kind::row, sp});
}

// labels: threads KitchenLayerNormColumnParallelLinear P06
TEST(SplitLinears, LayerNormColumnEqualsOneRank) {
  for (const bool sp : {false, true}) expect_equal_to_one_rank({Kind::layer_norm, sp});
}

// labels: threads KitchenLayerNormColumnParallelLinear P06
TEST(SplitLinears, ReducedNormGradientsHaveTheSameBitsOnAllRanks) {
  on_ranks(4, [](int) {
    Tensors result = run({Kind::layer_norm, true});
    for (const char* name : {"d layer_norm_weight", "d layer_norm_bias"}) {
      const Tensor& own = result.at(name);
      EXPECT_TRUE(testing::same_bits(tp_group()->broadcast(own, 0), own)) << name;
    }
  });
}

Lines lines_of(const Split& split, bool x_wants_grad = true, bool weight_wants_grad = true) {
  Lines lines;
  on_ranks(2, [&](int rank) {
    const CollectiveRecorder recorder;
    (void)run(split, x_wants_grad, weight_wants_grad);
    if (rank != 0) return;
    for (const std::string& line : recorder.lines()) lines.push_back(line);
  });
  return lines;
}

// labels: threads KitchenColumnParallelLinear KitchenRowParallelLinear CollectiveRecorder
TEST(SplitLinears, CollectivesAreThoseOfTheTable) {
  EXPECT_EQ(lines_of({Kind::column, false}), (Lines{"backward all_reduce tp"}));
  EXPECT_EQ(
      lines_of({Kind::column, true}),
      (Lines{"forward all_gather tp", "backward all_gather tp", "backward reduce_scatter tp"}));
  EXPECT_EQ(lines_of({Kind::row, false}), (Lines{"forward all_reduce tp"}));
  // The last one is the test's own reduction of the partial bias gradient.
  EXPECT_EQ(
      lines_of({Kind::row, true}),
      (Lines{"forward reduce_scatter tp", "backward all_gather tp", "forward all_reduce tp"}));
  EXPECT_EQ(lines_of({Kind::layer_norm, false}), (Lines{"backward all_reduce tp"}));
}

// labels: threads KitchenColumnParallelLinear CollectiveRecorder
TEST(SplitLinears, GradientsThatNobodyWantsCostNoCollective) {
  EXPECT_EQ(lines_of({Kind::column, true}, /*x_wants_grad=*/true, /*weight_wants_grad=*/false),
            (Lines{"forward all_gather tp", "backward reduce_scatter tp"}));
  EXPECT_EQ(lines_of({Kind::column, true}, /*x_wants_grad=*/false, /*weight_wants_grad=*/true),
            (Lines{"forward all_gather tp", "backward all_gather tp"}));
  EXPECT_EQ(lines_of({Kind::column, false}, /*x_wants_grad=*/false), (Lines{}));
}

// labels: threads KitchenColumnParallelLinear
TEST(SplitLinears, SequenceParallelColumnKeepsOnlyItsPartOfTheInput) {
  on_ranks(2, [](int) {
    const auto layer = make_layer({Kind::column, true}, false);
    const Tensor x = part(whole({kSequence, kBatch, kIn}, 1), 0);
    autograd::set_requires_grad(x);
    const Tensor y = dynamic_cast<modules::ForwardLinear&>(*layer).forward(x).first;
    const auto meta = std::static_pointer_cast<autograd::VariableMeta>(y.autograd_meta());
    for (const Tensor& saved : meta->grad_fn->saved_tensors()) {
      EXPECT_LE(saved.numel(), kSequence * kBatch * kIn / 2);
    }
  });
}

// labels: threads KitchenRowParallelLinear P03
TEST(SplitLinears, TheRowBiasIsAddedOnce) {
  for (const bool sp : {false, true}) {
    on_ranks(2, [&](int) {
      TransformerConfig config = testing::small_transformer();
      config.tensor_model_parallel_size = 2;
      config.sequence_parallel = sp;
      KitchenRowParallelLinear layer(4, 3, testing::row_args(make_config(config)));
      layer.finish_init(testing::linear_recipe(1));
      const std::vector<float> biases{100, 200, 300};
      ops::copy_into(Tensor::from_vector(default_context(), {3}, biases), layer.bias.detach());
      ops::fill_inplace(layer.weight.detach(), 1.0f);
      const Tensor x = Tensor::from_vector<float>(default_context(), {2, 1, 2}, {1, 1, 2, 2});
      const std::vector<float> y = layer.forward(x).first.to_vector<float>();
      const std::vector<float> both{104, 204, 304, 108, 208, 308};  // 4 ones, 4 twos, and the bias
      const auto own = both.begin() + (sp ? 3 * tp_group()->rank() : 0);
      EXPECT_EQ(y, std::vector<float>(own, sp ? own + 3 : both.end()));
    });
  }
}

// labels: threads KitchenRowParallelLinear P05
TEST(SplitLinears, ASkippedRowBiasIsReturnedAndCompletesTheOutput) {
  const Split split{Kind::row, false};
  const auto expected = run_whole(split).at("y");
  on_ranks(2, [&](int) {
    const auto layer = make_layer(split, true);
    ops::copy_into(whole({kOut}, 3), layer->bias.detach());
    const auto [y, bias] = dynamic_cast<modules::ForwardLinear&>(*layer).forward(
        part(whole({kSequence, kBatch, kIn}, 1), split.x_dim()));
    ASSERT_TRUE(bias.has_value());
    const Tensor all = Tensor::from_vector(default_context(), expected.first, expected.second);
    EXPECT_TRUE(close(all, ops::add_bias(y.detach(), bias->detach()), 3e-4, 1e-5));
  });
}

// labels: threads KitchenColumnParallelLinear KitchenRowParallelLinear P07
TEST(SplitLinears, SequencesThatCannotBeSplitAreRefused) {
  EXPECT_TRUE(throws<AssertionError>(
      [] {
        on_ranks(2, [](int) {
          const auto row = make_layer({Kind::row, true}, false);
          (void)dynamic_cast<modules::ForwardLinear&>(*row).forward(whole({7, 1, kIn / 2}, 1));
        });
      },
      {"7 is not divisible by 2"}));
  EXPECT_TRUE(throws<ValueError>(
      [] {
        on_ranks(2, [](int) {
          const auto column = make_layer({Kind::column, true}, false);
          (void)dynamic_cast<modules::ForwardLinear&>(*column).forward(whole({kIn}, 1));
        });
      },
      {"[12]", "sequence"}));
}

}  // namespace
}  // namespace kitchen
