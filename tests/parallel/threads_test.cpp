#include "kitchen/parallel/collective_recorder.h"
#include "parallel/collective_checks.h"
#include "support/ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

namespace kitchen {
namespace {

using namespace std::chrono_literals;
using testing::on_ranks;
using testing::throws;
using testing::tp_group;

Tensor floats(std::int64_t count) {
  return Tensor::zeros(default_context(), {count}, DType::float32);
}

// labels: threads ProcessGroup
TEST(RankThreads, EveryCollectiveEqualsItsDefinition) {
  for (const int p : {1, 2, 3, 4}) {
    on_ranks(p, [](int) { testing::check_all_collectives(*world_group(), default_context()); });
  }
}

// labels: threads ProcessGroup
TEST(RankThreads, OverlappingGroupsKeepTheirOrder) {
  on_ranks(4, [](int rank) {
    destroy_model_parallel();
    ParallelSizes sizes;
    sizes.tensor = 2;
    initialize_model_parallel(sizes);
    const auto groups = ProcessGroupCollection::use_mpu_process_groups();
    const Tensor x = Tensor::from_vector<float>(default_context(), {1}, {std::ldexp(1.0f, rank)});
    for (int round = 0; round < 20; ++round) {
      Work tp = groups->tp->all_reduce_async(x);
      EXPECT_EQ(groups->dp->all_reduce(x).to_vector<float>()[0], rank % 2 == 0 ? 5.0f : 10.0f);
      EXPECT_EQ(tp.wait().to_vector<float>()[0], rank < 2 ? 3.0f : 12.0f);
    }
  });
}

// labels: threads ProcessGroup
TEST(RankThreads, WhatIsSentMayBeChangedAfterWait) {
  on_ranks(3, [](int rank) {
    const Tensor x = Tensor::from_vector<float>(default_context(), {1}, {1.0f});
    if (rank == 0) std::this_thread::sleep_for(50ms);  // the others have left their wait by then
    for (int i = 0; i < 50; ++i) {
      x.data<float>()[0] = static_cast<float>(i);
      EXPECT_EQ(tp_group()->all_reduce(x).to_vector<float>()[0], static_cast<float>(3 * i));
    }
  });
}

// labels: threads R01
TEST(RankThreads, AFailingRankEndsTheOthersAndIsNamed) {
  std::atomic<int> ended{0};
  EXPECT_TRUE(throws<ValueError>(
      [&] {
        on_ranks(3, [&](int rank) {
          if (rank == 1) throw ValueError("bad shard");
          EXPECT_TRUE(
              throws<RuntimeError>([] { (void)tp_group()->all_reduce(floats(4)); },
                                   {"rank " + std::to_string(rank), "all_reduce(sum, float32, 4)",
                                    "tp [0, 1, 2]", "rank 1 failed: bad shard"}));
          ++ended;
        });
      },
      {"bad shard", "(rank 1)"}));
  EXPECT_EQ(ended, 2);
}

// labels: threads P25 R01
TEST(RankThreads, CallsThatDifferAreRefusedWithBothValues) {
  const auto expect_mismatch = [](const std::function<void(int)>& call,
                                  const std::vector<std::string>& phrases) {
    EXPECT_TRUE(throws<RuntimeError>([&] { on_ranks(2, call); }, phrases));
  };
  expect_mismatch(
      [](int rank) { (void)tp_group()->all_reduce(floats(rank == 0 ? 409600 : 409598)); },
      {"rank 0 calls all_reduce(sum, float32, 409600)",
       "rank 1 calls all_reduce(sum, float32, 409598)"});
  expect_mismatch(
      [](int rank) {
        const Tensor x =
            Tensor::zeros(default_context(), {4}, rank == 0 ? DType::float32 : DType::bfloat16);
        (void)tp_group()->all_reduce(x);
      },
      {"float32, 4", "bfloat16, 4"});
  expect_mismatch(
      [](int rank) {
        (void)tp_group()->all_reduce(floats(4), rank == 0 ? ReduceOp::sum : ReduceOp::max);
      },
      {"sum, float32", "max, float32"});
  expect_mismatch(
      [](int rank) {
        (void)(rank == 0 ? tp_group()->all_reduce(floats(4)) : tp_group()->all_gather(floats(4)));
      },
      {"all_reduce(", "all_gather(", "the same order"});
  expect_mismatch([](int rank) { (void)tp_group()->broadcast(floats(4), rank); },
                  {"root 0", "root 1"});
}

// labels: threads P26
TEST(RankThreads, AllToAllComparesWhatIsSentWithWhatIsExpected) {
  EXPECT_TRUE(throws<RuntimeError>(
      [] {
        on_ranks(2, [](int rank) {
          const std::vector<std::int64_t> to =
              rank == 0 ? std::vector<std::int64_t>{0, 4} : std::vector<std::int64_t>{1, 0};
          const std::vector<std::int64_t> from =
              rank == 0 ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{3, 0};
          (void)tp_group()->all_to_all(floats(to[0] + to[1]), from, to);
        });
      },
      {"to ranks [0, 4]", "from ranks [3, 0]"}));
}

// labels: threads R01
TEST(RankThreads, ALateRankIsNamedAfterTheDeadline) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(throws<RuntimeError>(
      [] {
        on_ranks(
            3,
            [](int rank) {
              if (rank == 2) std::this_thread::sleep_for(1500ms);
              tp_group()->barrier();
            },
            200ms);
      },
      {"barrier", "waited 200 ms for rank 2", "deadline"}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

// labels: threads R01
TEST(RankThreads, ARankThatReturnsEarlyIsNotWaitedFor) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(throws<RuntimeError>(
      [] {
        on_ranks(2, [](int rank) {
          if (rank == 0) tp_group()->barrier();
        });
      },
      {"rank 1 returned without taking part"}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

// labels: threads ProcessGroup
TEST(RankThreads, BadArgumentsAreRefusedBeforeAnythingMoves) {
  on_ranks(2, [](int) {
    const auto group = tp_group();
    EXPECT_TRUE(throws<AssertionError>([&] { (void)group->reduce_scatter(floats(3)); },
                                       {"3 is not divisible by 2"}));
    EXPECT_TRUE(throws<ValueError>(
        [&] {
          (void)group->all_gather(floats(3), {1, 1});
        },
        {"3 rows", "[1, 1]"}));
    EXPECT_TRUE(throws<ValueError>(
        [&] {
          (void)group->reduce_scatter(floats(3), ReduceOp::sum, {1, 1});
        },
        {"[1, 1]", "sum to 3"}));
    EXPECT_TRUE(throws<ValueError>(
        [&] {
          (void)group->all_to_all(floats(3), {1, 1}, {4, -1});
        },
        {"input_splits [4, -1]"}));
    EXPECT_TRUE(throws<ValueError>([&] { (void)group->broadcast(floats(3), 2); },
                                   {"root is 2", "2 ranks"}));
    const Tensor table = Tensor::zeros(default_context(), {2, 2}, DType::float32);
    EXPECT_TRUE(throws<ValueError>([&] { group->all_reduce_inplace(table.transpose(0, 1)); },
                                   {"not contiguous", "all_reduce"}));
    const Tensor codes = Tensor::zeros(default_context(), {2}, DType::float8_e4m3);
    EXPECT_TRUE(
        throws<NotImplementedError>([&] { (void)group->all_reduce(codes); }, {"float8_e4m3"}));
    const Tensor ints = Tensor::zeros(default_context(), {2}, DType::int32);
    EXPECT_TRUE(throws<NotImplementedError>([&] { (void)group->all_reduce(ints, ReduceOp::avg); },
                                            {"average", "int32"}));
  });
  EXPECT_TRUE(throws<ValueError>([] { parallel::run_ranks(0, [] {}); }, {"num_ranks is 0"}));
}

// labels: threads ProcessGroup
TEST(RankThreads, AnExceptionOfAnotherKindBecomesARuntimeError) {
  EXPECT_TRUE(throws<RuntimeError>(
      [] { on_ranks(2, [](int) { throw std::out_of_range("index 7"); }); }, {"index 7", "(rank "}));
}

// labels: threads ProcessGroup
TEST(RankThreads, OnTheMetaDeviceNothingMovesButShapesAreRight) {
  on_ranks(2, [](int rank) {
    const ContextPtr meta = make_meta_context(*default_context());
    if (rank == 1) return;  // nobody is waited for
    const Tensor x = Tensor::empty(meta, {4, 3}, DType::bfloat16);
    EXPECT_EQ(tp_group()->all_gather(x).shape(), (Shape{8, 3}));
    EXPECT_EQ(tp_group()->reduce_scatter(x).shape(), (Shape{2, 3}));
    EXPECT_EQ(tp_group()->all_reduce(x).shape(), (Shape{4, 3}));
  });
}

// labels: threads CollectiveRecorder
TEST(RankThreads, TheRecorderListsWhatThisRankStarts) {
  on_ranks(2, [](int) {
    CollectiveRecorder outer;
    (void)tp_group()->all_reduce(floats(3));
    {
      const CollectiveRecorder inner;
      const BackwardScope backward;
      (void)tp_group()->all_gather(Tensor::zeros(default_context(), {2, 3}, DType::bfloat16));
      ASSERT_EQ(inner.records().size(), 1u);
      EXPECT_EQ(inner.records()[0].bytes, 12);
      EXPECT_EQ(inner.lines(), (std::vector<std::string>{"backward all_gather tp"}));
    }
    tp_group()->barrier();
    EXPECT_EQ(outer.lines(),
              (std::vector<std::string>{"forward all_reduce tp", "forward barrier tp"}));
    (void)ProcessGroup::self()->all_reduce(floats(3));
    EXPECT_EQ(outer.records().size(), 2u);
  });
}

}  // namespace
}  // namespace kitchen
