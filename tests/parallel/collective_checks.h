#pragma once

#include "kitchen/base/error.h"
#include "kitchen/parallel/process_group.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "support/values.h"

#include <gtest/gtest.h>

/// @file  collective_checks.h
/// @brief What every communicator owes a group of any size: each rank of the group calls these
/// alike. The
///        expected values are computed from what each rank is known to send.

namespace kitchen::testing {

/// Element i of what rank r sends: different for each pair, exact in bfloat16 and within uint8.
inline float sent(int rank, std::int64_t i) {
  return static_cast<float>((rank * 7 + static_cast<int>(i) * 3) % 29);
}

inline std::vector<float> sent_by(int rank, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(sent(rank, i));
  return values;
}

inline void check_reductions(const ProcessGroup& group, const ContextPtr& context) {
  for (const std::int64_t count : {0, 1, 5, 1031}) {
    std::vector<float> sum(static_cast<std::size_t>(count)), max(sum), avg(sum);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      for (int r = 0; r < group.size(); ++r) {
        sum[at] += sent(r, i);
        max[at] = std::max(max[at], sent(r, i));
      }
      avg[at] = sum[at] / static_cast<float>(group.size());
    }
    const Tensor x = Tensor::from_vector(context, {count}, sent_by(group.rank(), count));
    EXPECT_EQ(group.all_reduce(x).to_vector<float>(), sum);
    EXPECT_EQ(group.all_reduce(x, ReduceOp::max).to_vector<float>(), max);
    EXPECT_EQ(group.all_reduce(x, ReduceOp::avg).to_vector<float>(), avg);
    EXPECT_EQ(x.to_vector<float>(), sent_by(group.rank(), count)) << "the input was changed";
    group.all_reduce_inplace(x);
    EXPECT_EQ(x.to_vector<float>(), sum);
  }
}

template <class T>
void check_integer_sum(const ProcessGroup& group, const ContextPtr& context) {
  const T own = static_cast<T>(group.rank() + 1);
  const Tensor x = Tensor::from_vector<T>(context, {2}, {own, 3});
  const int p = group.size();
  EXPECT_EQ(group.all_reduce(x).to_vector<T>(),
            (std::vector<T>{static_cast<T>(p * (p + 1) / 2), static_cast<T>(3 * p)}));
}

inline void check_rank_order(const ProcessGroup& group, const ContextPtr& context) {
  // 2^24 + 1 + 1 + ... in fp32: rank order drops each 1, any order that adds the ones first does
  // not.
  const float own = group.rank() == 0 ? 16777216.0f : 1.0f;
  const Tensor x = Tensor::from_vector<float>(context, {1}, {own});
  EXPECT_EQ(group.all_reduce(x).to_vector<float>()[0], 16777216.0f);
  // bfloat16 256 + 1 + 1 + ...: fp32 keeps every 1, and one rounding at the end gives an even step.
  const Tensor b = tensor_of(context, {1}, DType::bfloat16, {group.rank() == 0 ? 256.0 : 1.0});
  const double exact = 256.0 + group.size() - 1;
  const double rounded = exact == 257.0 ? 256.0 : exact == 259.0 ? 260.0 : exact;
  EXPECT_TRUE(same_bits(group.all_reduce(b), tensor_of(context, {1}, DType::bfloat16, {rounded})));
}

inline void check_gather_and_scatter(const ProcessGroup& group, const ContextPtr& context) {
  const int p = group.size();
  std::vector<float> all;
  std::vector<std::int64_t> rows;
  for (int r = 0; r < p; ++r) {
    rows.push_back((r + 2) % 3);  // 2, 0, 1, 2: one rank has nothing
    const auto part = sent_by(r, rows.back() * 3);
    all.insert(all.end(), part.begin(), part.end());
  }
  const std::int64_t own = rows[static_cast<std::size_t>(group.rank())];
  const Tensor x = Tensor::from_vector(context, {own, 3}, sent_by(group.rank(), own * 3));
  EXPECT_EQ(group.all_gather(x, rows).to_vector<float>(), all);
  // A strided tensor is sent by its logical order.
  const Tensor t = Tensor::from_vector<float>(context, {2, 2}, {1, 2, 3, 4}).transpose(0, 1);
  const std::vector<float> gathered = group.all_gather(t).to_vector<float>();
  EXPECT_EQ((std::vector<float>(gathered.end() - 4, gathered.end())),
            (std::vector<float>{1, 3, 2, 4}));

  const auto whole = static_cast<std::int64_t>(all.size()) / 3;
  const Tensor y = Tensor::from_vector(context, {whole, 3}, sent_by(group.rank(), whole * 3));
  std::int64_t first = 0;
  for (int r = 0; r < group.rank(); ++r) first += rows[static_cast<std::size_t>(r)];
  std::vector<float> expected(static_cast<std::size_t>(own * 3), 0.0f);
  for (std::int64_t i = 0; i < own * 3; ++i) {
    for (int r = 0; r < p; ++r) expected[static_cast<std::size_t>(i)] += sent(r, first * 3 + i);
  }
  EXPECT_EQ(group.reduce_scatter(y, ReduceOp::sum, rows).to_vector<float>(), expected);
}

inline void check_all_to_all(const ProcessGroup& group, const ContextPtr& context) {
  // Rank i sends (i + 2j) mod 3 rows of value 100·i + j to rank j.
  const int p = group.size();
  std::vector<std::int64_t> to, from;
  std::vector<float> values, expected;
  for (int j = 0; j < p; ++j) {
    to.push_back((group.rank() + 2 * j) % 3);
    from.push_back((j + 2 * group.rank()) % 3);
    values.insert(values.end(), static_cast<std::size_t>(2 * to.back()),
                  static_cast<float>(100 * group.rank() + j));
    expected.insert(expected.end(), static_cast<std::size_t>(2 * from.back()),
                    static_cast<float>(100 * j + group.rank()));
  }
  const auto rows = static_cast<std::int64_t>(values.size()) / 2;
  EXPECT_EQ(group.all_to_all(Tensor::from_vector(context, {rows, 2}, values), from, to)
                .to_vector<float>(),
            expected);
}

inline void check_broadcast(const ProcessGroup& group, const ContextPtr& context) {
  for (int root = 0; root < group.size(); ++root) {
    const Tensor x = Tensor::from_vector(context, {7}, sent_by(group.rank(), 7));
    EXPECT_EQ(group.broadcast(x, root).to_vector<float>(), sent_by(root, 7));
  }
  group.barrier();
}

inline void check_async_order(const ProcessGroup& group, const ContextPtr& context) {
  const Tensor x = Tensor::from_vector(context, {5}, sent_by(group.rank(), 5));
  Work first = group.all_reduce_async(x);
  Work second = group.all_gather_async(x);
  const Tensor gathered = second.wait();  // out of order, and before the first
  const Tensor reduced = first.wait();
  EXPECT_EQ(first.wait().id(), reduced.id());
  for (std::int64_t i = 0; i < 5; ++i) {
    float sum = 0;
    for (int r = 0; r < group.size(); ++r) {
      sum += sent(r, i);
      EXPECT_EQ(gathered.data<float>()[r * 5 + i], sent(r, i));
    }
    EXPECT_EQ(reduced.data<float>()[i], sum);
  }
}

inline void check_all_collectives(const ProcessGroup& group, const ContextPtr& context) {
  check_reductions(group, context);
  check_integer_sum<std::int32_t>(group, context);
  check_integer_sum<std::int64_t>(group, context);
  check_integer_sum<std::uint8_t>(group, context);
  check_rank_order(group, context);
  check_gather_and_scatter(group, context);
  check_all_to_all(group, context);
  check_broadcast(group, context);
  check_async_order(group, context);
}

}  // namespace kitchen::testing
