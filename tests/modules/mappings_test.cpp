#include "kitchen/modules/mappings.h"
#include "kitchen/autograd/backward.h"
#include "kitchen/autograd/node.h"
#include "kitchen/modules/column_parallel_linear.h"
#include "kitchen/modules/init_methods.h"
#include "kitchen/modules/row_parallel_linear.h"
#include "kitchen/modules/vocab_parallel_embedding.h"
#include "kitchen/parallel/collective_recorder.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/layers.h"
#include "support/ranks.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

using testing::on_ranks;
using testing::throws;
using testing::tp_group;

using Values = std::vector<float>;

/// Element (r, c) of rank k's [rows, cols] matrix is 100k + 10r + c.
Tensor matrix_of(int rank, std::int64_t rows, std::int64_t cols) {
  Values values;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c)
      values.push_back(static_cast<float>(100 * rank + 10 * r + c));
  }
  return Tensor::from_vector(default_context(), {rows, cols}, values);
}

/// Forward of matrix_of(rank, 4, 2) and backward of a gradient that is matrix_of(rank, ...) of the
/// output's shape.
struct Passed {
  Values y;
  Values dx;
  std::vector<std::string> lines;
};

template <class Mapping>
Passed pass(int rank, const Mapping& mapping) {
  const CollectiveRecorder recorder;
  const Tensor x = matrix_of(rank, 4, 2);
  autograd::set_requires_grad(x);
  const Tensor y = mapping(x);
  autograd::backward(y, matrix_of(rank, y.dim(0), y.dim(1)));
  return {y.detach().to_vector<float>(), autograd::grad_of(x).to_vector<float>(), recorder.lines()};
}

Values own(int rank) {
  return matrix_of(rank, 4, 2).to_vector<float>();
}

/// matrix_of(0, ...) + matrix_of(1, ...).
Values summed(std::int64_t rows, std::int64_t cols) {
  Values a = matrix_of(0, rows, cols).to_vector<float>();
  const Values b = matrix_of(1, rows, cols).to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

Values joined(Values a, const Values& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

using Lines = std::vector<std::string>;

// labels: threads mappings
TEST(Mappings, CopyAndReduceAreTransposes) {
  on_ranks(2, [](int rank) {
    const Passed f =
        pass(rank, [](const Tensor& x) { return copy_to_tensor_model_parallel_region(x); });
    EXPECT_EQ(f.y, own(rank));
    EXPECT_EQ(f.dx, summed(4, 2));
    EXPECT_EQ(f.lines, (Lines{"backward all_reduce tp"}));
    const Passed g =
        pass(rank, [](const Tensor& x) { return reduce_from_tensor_model_parallel_region(x); });
    EXPECT_EQ(g.y, summed(4, 2));
    EXPECT_EQ(g.dx, own(rank));
    EXPECT_EQ(g.lines, (Lines{"forward all_reduce tp"}));
  });
}

// labels: threads mappings
TEST(Mappings, LastDimensionScattersAndGathers) {
  on_ranks(2, [](int rank) {
    const Passed s =
        pass(rank, [](const Tensor& x) { return scatter_to_tensor_model_parallel_region(x); });
    Values column, both, part, total;
    for (int r = 0; r < 4; ++r) {
      const auto at = [r](int k, int c) { return static_cast<float>(100 * k + 10 * r + c); };
      column.push_back(at(rank, rank));
      for (const float value : {at(0, 0), at(1, 0)}) both.push_back(value);
      for (int c = 0; c < 2; ++c) part.push_back(at(rank, 2 * rank + c));
      for (int c = 0; c < 2; ++c) total.push_back(at(0, 2 * rank + c) + at(1, 2 * rank + c));
    }
    EXPECT_EQ(s.y, column);
    EXPECT_EQ(s.dx, both);
    const Passed g =
        pass(rank, [](const Tensor& x) { return gather_from_tensor_model_parallel_region(x); });
    EXPECT_EQ(g.y.size(), 16u);
    EXPECT_EQ((Values{g.y[0], g.y[1], g.y[2], g.y[3]}), (Values{0, 1, 100, 101}));
    EXPECT_EQ(g.dx, part);
    const Passed a = pass(
        rank, [](const Tensor& x) { return all_gather_last_dim_from_tensor_parallel_region(x); });
    EXPECT_EQ(a.y, g.y);
    EXPECT_EQ(a.dx, total);
    const Passed r = pass(
        rank, [](const Tensor& x) { return reduce_scatter_last_dim_to_tensor_parallel_region(x); });
    EXPECT_EQ(r.dx, both);
    EXPECT_EQ(r.lines, (Lines{"forward reduce_scatter tp", "backward all_gather tp"}));
  });
}

// labels: threads mappings
TEST(Mappings, SequenceDimensionScattersGathersAndReduces) {
  on_ranks(2, [](int rank) {
    const auto rows = [&](const Values& all) {
      const auto half = static_cast<std::ptrdiff_t>(all.size() / 2);
      return Values(all.begin() + rank * half, all.begin() + (rank + 1) * half);
    };
    const Values halves =
        joined(matrix_of(0, 2, 2).to_vector<float>(), matrix_of(1, 2, 2).to_vector<float>());
    const Passed s =
        pass(rank, [](const Tensor& x) { return scatter_to_sequence_parallel_region(x); });
    EXPECT_EQ(s.y, rows(own(rank)));
    EXPECT_EQ(s.dx, halves);
    const Passed g =
        pass(rank, [](const Tensor& x) { return gather_from_sequence_parallel_region(x); });
    EXPECT_EQ(g.y, joined(own(0), own(1)));
    EXPECT_EQ(g.dx, rows(summed(8, 2)));
    const Passed split =
        pass(rank, [](const Tensor& x) { return gather_from_sequence_parallel_region(x, false); });
    EXPECT_EQ(split.dx, rows(matrix_of(rank, 8, 2).to_vector<float>()));
    EXPECT_EQ(split.lines, (Lines{"forward all_gather tp"}));
    const Passed r =
        pass(rank, [](const Tensor& x) { return reduce_scatter_to_sequence_parallel_region(x); });
    EXPECT_EQ(r.y, rows(summed(4, 2)));
    EXPECT_EQ(r.dx, halves);
    // Unequal parts: rank 0 keeps one row, rank 1 three.
    const Passed uneven = pass(rank, [](const Tensor& x) {
      return reduce_scatter_to_sequence_parallel_region(x, nullptr, {1, 3});
    });
    EXPECT_EQ(uneven.y.size(), rank == 0 ? 2u : 6u);
    EXPECT_EQ(uneven.dx,
              joined(matrix_of(0, 1, 2).to_vector<float>(), matrix_of(1, 3, 2).to_vector<float>()));
  });
}

// labels: threads mappings P26
TEST(Mappings, AllToAllGoesBackTheWayItCame) {
  on_ranks(2, [](int rank) {
    // Rank 0 sends (1, 3) rows, rank 1 (4, 0).
    const std::vector<std::int64_t> to =
        rank == 0 ? std::vector<std::int64_t>{1, 3} : std::vector<std::int64_t>{4, 0};
    const std::vector<std::int64_t> from =
        rank == 0 ? std::vector<std::int64_t>{1, 4} : std::vector<std::int64_t>{3, 0};
    const Tensor x = matrix_of(rank, 4, 2);
    autograd::set_requires_grad(x);
    const Tensor y = all_to_all(nullptr, x, from, to);
    EXPECT_EQ(y.dim(0), rank == 0 ? 5 : 3);
    autograd::backward(y, y.detach());  // what came goes back
    EXPECT_TRUE(testing::same_bits(x.detach(), autograd::grad_of(x)));
  });
}

// labels: mappings
TEST(Mappings, OneRankIsTheIdentityAndOddSizesAreRefused) {
  on_ranks(1, [](int) {
    const Tensor x = matrix_of(0, 4, 2);
    for (const auto mapping :
         {&copy_to_tensor_model_parallel_region, &reduce_from_tensor_model_parallel_region,
          &scatter_to_sequence_parallel_region}) {
      EXPECT_EQ(mapping(x, nullptr).id(), x.id());
    }
    EXPECT_EQ(all_to_all(nullptr, x).id(), x.id());
  });
  on_ranks(2, [](int) {
    EXPECT_TRUE(throws<AssertionError>(
        [] { (void)scatter_to_sequence_parallel_region(matrix_of(0, 3, 2)); },
        {"3 is not divisible by 2"}));
    EXPECT_TRUE(throws<AssertionError>(
        [] { (void)scatter_to_tensor_model_parallel_region(matrix_of(0, 2, 3)); },
        {"3 is not divisible by 2"}));
  });
}

// labels: threads ColumnParallelLinear RowParallelLinear
TEST(Mappings, LocalLayersGatherTheirOutputAndScatterTheirInput) {
  std::vector<Values> results;
  for (const int p : {1, 2}) {
    on_ranks(p, [&](int rank) {
      const auto config = make_config(testing::small_transformer());
      ColumnParallelLinear::Args column;
      column.config = config;
      column.init_method = init_method_normal(0.5);
      column.gather_output = true;
      RowParallelLinear::Args row;
      row.config = config;
      row.init_method = init_method_normal(0.5);
      row.input_is_parallel = false;
      ColumnParallelLinear first(2, 6, column);
      RowParallelLinear second(6, 4, row);
      const Tensor x = matrix_of(0, 4, 2);
      autograd::set_requires_grad(x);
      const Tensor y = second.forward(first.forward(x).first).first;
      autograd::backward(y, matrix_of(0, 4, 4));
      if (rank == 0) {
        results.push_back(
            joined(y.detach().to_vector<float>(), autograd::grad_of(x).to_vector<float>()));
      }
    });
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    // fp32 sums of 6 terms in another order; values stay below 2000.
    EXPECT_NEAR(results[0][i], results[1][i], 6 * 0x1p-24 * 6 * 2000);
  }
}

// labels: threads VocabParallelEmbedding
TEST(Mappings, AnEmbeddingSplitByRowsEqualsTheWholeOne) {
  std::vector<Values> outputs, gradients;
  for (const int p : {1, 2, 4}) {
    outputs.emplace_back();
    gradients.emplace_back();
    on_ranks(p, [&](int rank) {
      VocabParallelEmbedding table(8, 3, init_method_normal(0.5), testing::small_transformer());
      const Tensor ids =
          Tensor::from_vector<std::int64_t>(default_context(), {2, 3}, {0, 7, 3, 4, 4, 2});
      const Tensor y = table.forward(ids);
      autograd::backward(
          y, Tensor::from_vector<float>(default_context(), {2, 3, 3}, Values(18, 0.5f)));
      const Values gradient =
          tp_group()->all_gather(autograd::grad_of(table.weight)).to_vector<float>();
      if (rank == 0) outputs.back() = y.detach().to_vector<float>();
      if (rank == 0) gradients.back() = gradient;
    });
    EXPECT_EQ(outputs.back(), outputs.front());  // one rank adds the row, the others exact zeros
    EXPECT_EQ(gradients.back(), gradients.front());
  }
}

}  // namespace
}  // namespace kitchen
