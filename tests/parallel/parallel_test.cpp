#include "kitchen/base/error.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/parallel/process_group_collection.h"
#include "kitchen/parallel/rng_tracker.h"
#include "kitchen/parallel/sharded_tensor.h"
#include "support/expect_error.h"
#include "support/rank_test.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

using testing::RankTest;
using testing::throws;

using Parallel = RankTest;

// labels: ProcessGroup D9
TEST_F(Parallel, AGroupKnowsItsLayout) {
  const ProcessGroup group({4, 6}, 1);
  EXPECT_EQ(group.rank(), 1);
  EXPECT_EQ(group.size(), 2);
  EXPECT_EQ(group.ranks(), (std::vector<int>{4, 6}));
  EXPECT_TRUE(throws<ValueError>([] { (void)ProcessGroup({0, 1}, 2); }, {"rank 2", "2 ranks"}));
  EXPECT_TRUE(throws<ValueError>([] { (void)ProcessGroup({0}, -1); }, {"rank -1"}));
  EXPECT_TRUE(throws<ValueError>([] { (void)ProcessGroup({}, 0); }, {"0 ranks"}));
}

// labels: ProcessGroup D9
TEST_F(Parallel, ARankWithoutGroupsHasItself) {
  const RankScope scope(std::make_shared<RankState>(3, 8));
  EXPECT_EQ(ProcessGroup::self()->ranks(), (std::vector<int>{3}));
  const auto groups = ProcessGroupCollection::use_mpu_process_groups();
  for (const auto& group : {groups->tp, groups->pp, groups->dp, groups->cp, groups->tp_cp,
                            groups->dp_cp, groups->tp_dp_cp, groups->ep, groups->expt_tp,
                            groups->tp_ep, groups->expt_dp}) {
    ASSERT_TRUE(group);
    EXPECT_EQ(group->ranks(), (std::vector<int>{3}));
  }
  EXPECT_EQ(get_tensor_model_parallel_group_if_none(nullptr, false), groups->tp);
  EXPECT_EQ(get_tensor_model_parallel_group_if_none(nullptr, true), groups->expt_tp);
  const auto given = std::make_shared<ProcessGroup>(std::vector<int>{0, 1}, 0);
  EXPECT_EQ(get_tensor_model_parallel_group_if_none(given, true), given);
}

// labels: ProcessGroup
TEST_F(Parallel, AGroupWithoutACommunicatorRefusesToMoveData) {
  const Tensor x = tensor({4}, 1);
  EXPECT_EQ(ProcessGroup::self()->all_reduce(x).id(), x.id());
  EXPECT_TRUE(throws<RuntimeError>([&] { (void)ProcessGroup({0, 1}, 0).all_reduce(x); },
                                   {"all_reduce", "2 ranks", "no communicator"}));
}

// labels: divide
TEST_F(Parallel, DivideNamesBothNumbers) {
  EXPECT_EQ(divide(12, 4), 3);
  EXPECT_EQ(divide(0, 4), 0);
  EXPECT_TRUE(throws<AssertionError>([] { (void)divide(10, 4); }, {"10 is not divisible by 4"}));
  EXPECT_TRUE(throws<AssertionError>([] { (void)divide(1, 0); }, {"1 is not divisible by 0"}));
}

// labels: RngTracker
TEST_F(Parallel, TrackerRefusesNamesAndSeedsThatExist) {
  RngTracker tracker;
  EXPECT_FALSE(tracker.is_initialized());
  tracker.add("a", 1);
  EXPECT_TRUE(tracker.is_initialized());
  EXPECT_TRUE(throws<RuntimeError>([&] { tracker.add("a", 2); }, {"'a'", "already exists"}));
  EXPECT_TRUE(throws<RuntimeError>([&] { tracker.add("b", 1); }, {"seed 1", "'a'"}));
  EXPECT_TRUE(throws<RuntimeError>([&] { (void)tracker.fork("b"); }, {"'b'", "is not added"}));
  EXPECT_TRUE(throws<RuntimeError>([&] { (void)tracker.fork(); },
                                   {"'model-parallel-rng'", "is not added"}));
  tracker.reset();
  EXPECT_FALSE(tracker.is_initialized());
  tracker.add("b", 1);
  EXPECT_EQ(tracker.get_states().at("b"), (GeneratorState{1, 0}));
}

// labels: RngTracker
TEST_F(Parallel, ForksNestAndSaveTheirAdvance) {
  RngTracker tracker;
  tracker.add("a", 11);
  tracker.add("b", 22);
  const GeneratorState outer = default_generator();
  {
    const RngTracker::Fork a = tracker.fork("a");
    EXPECT_EQ(next_rng().seed, 11u);
    {
      const RngTracker::Fork b = tracker.fork("b");
      EXPECT_EQ(next_rng().seed, 22u);
      EXPECT_EQ(next_rng().stream_id, 1u);
    }
    const Rng second = next_rng();
    EXPECT_EQ(second.seed, 11u);
    EXPECT_EQ(second.stream_id, 1u);
  }
  EXPECT_EQ(default_generator(), outer);
  EXPECT_EQ(tracker.get_states().at("a"), (GeneratorState{11, 2}));
  EXPECT_EQ(tracker.get_states().at("b"), (GeneratorState{22, 2}));
}

// labels: RngTracker
TEST_F(Parallel, AnExceptionInAForkRestoresTheOuterState) {
  RngTracker tracker;
  tracker.add("a", 11);
  const GeneratorState outer = default_generator();
  try {
    const RngTracker::Fork a = tracker.fork("a");
    (void)next_rng();
    throw RuntimeError("inside");
  } catch (const RuntimeError&) {
  }
  EXPECT_EQ(default_generator(), outer);
  EXPECT_EQ(tracker.get_states().at("a").offset, 1u);
  tracker.set_states({{"c", {5, 9}}});
  const RngTracker::Fork c = tracker.fork("c");
  EXPECT_EQ(next_rng().stream_id, 9u);
}

// labels: model_parallel_cuda_manual_seed RngTracker
TEST_F(Parallel, SeedsFollowTheRanks) {
  model_parallel_cuda_manual_seed(100, /*tp_rank=*/3, /*ep_rank=*/2, /*etp_rank=*/1);
  EXPECT_EQ(run_seed(), 100u);
  EXPECT_EQ(default_generator(), (GeneratorState{100, 0}));
  const auto& states = get_cuda_rng_tracker().get_states();
  EXPECT_EQ(states.size(), 3u);
  EXPECT_EQ(states.at(get_data_parallel_rng_tracker_name()).seed, 100u);
  EXPECT_EQ(states.at("model-parallel-rng").seed, 100u + 2718u + 3u);
  EXPECT_EQ(states.at(get_expert_parallel_rng_tracker_name()).seed, 100u + 1024u + 200u + 1u);
  EXPECT_EQ(get_expert_parallel_rng_tracker_name(), "expert-parallel-rng");
  EXPECT_EQ(get_data_parallel_rng_tracker_name(), "data-parallel-rng");
  (void)next_rng();
  model_parallel_cuda_manual_seed(100);  // a second call starts over
  EXPECT_EQ(default_generator().offset, 0u);
}

// labels: ShardedTensor
TEST_F(Parallel, OffsetsPlaceALocalTensorInTheWhole) {
  const Tensor x = tensor({2, 3}, 1);
  // Layer 4 of 6 in a leading axis, rank 1 of 4 along the columns (axis 1 + 1 leading).
  const ShardedTensor s =
      ShardedTensor::from_rank_offsets("k", x, {{0, 4, 6}, {2, 1, 4}}, {0, 0, 7}, 1);
  EXPECT_EQ(s.key, "k");
  EXPECT_EQ(s.dtype, DType::float32);
  EXPECT_EQ(s.local_shape, (Shape{2, 3}));
  EXPECT_EQ(s.global_shape, (Shape{6, 2, 12}));
  EXPECT_EQ(s.global_offset, (Shape{4, 0, 3}));
  EXPECT_EQ(s.axis_fragmentations, (Shape{6, 1, 4}));
  EXPECT_EQ(s.replica_id, (ReplicaId{0, 0, 7}));
  EXPECT_EQ(s.prepend_axis_num, 1);
  EXPECT_TRUE(throws<AssertionError>(
      [&] { (void)ShardedTensor::from_rank_offsets("k", x, {{2, 0, 2}}, {0, 0, 0}); },
      {"'k'", "axis 2"}));
}

// labels: make_sharded_tensors_for_checkpoint
TEST_F(Parallel, NamedTensorsBecomeShards) {
  const auto tp = std::make_shared<ProcessGroup>(std::vector<int>{0, 1, 2}, 2);
  const auto dp = std::make_shared<ProcessGroup>(std::vector<int>{0, 5}, 1);
  const Tensor w = tensor({4, 3}, 1);
  const Tensor b = tensor({4}, 2);
  const Tensor extra = Tensor::empty(context, {0}, DType::uint8);
  const ShardedStateDict dict = make_sharded_tensors_for_checkpoint(
      {{"weight", w}, {"bias", b}, {"_extra_state", extra}}, "p.", {{"weight", 1}}, {{0, 1, 2}}, tp, dp);
  ASSERT_EQ(dict.items().size(), 3u);
  const auto& weight = std::get<ShardedTensor>(dict.at("p.weight"));
  EXPECT_EQ(weight.key, "p.weight");
  EXPECT_EQ(weight.global_shape, (Shape{2, 4, 9}));
  EXPECT_EQ(weight.global_offset, (Shape{1, 0, 6}));
  EXPECT_EQ(weight.replica_id, (ReplicaId{0, 0, 1}));
  const auto& bias = std::get<ShardedTensor>(dict.at("p.bias"));
  EXPECT_EQ(bias.global_shape, (Shape{2, 4}));
  EXPECT_EQ(bias.replica_id, (ReplicaId{0, 2, 1}));
  const auto& object = std::get<ShardedObject>(dict.at("p._extra_state"));
  EXPECT_EQ(object.global_shape, (Shape{2}));
  EXPECT_EQ(object.global_offset, (Shape{1}));
  EXPECT_EQ(object.replica_id, (ReplicaId{0, 2, 1}));
}

// labels: make_sharded_tensors_for_checkpoint
TEST_F(Parallel, ExtraStateNeedsContiguousAxes) {
  const auto self = ProcessGroup::self();
  const Tensor extra = Tensor::empty(context, {0}, DType::uint8);
  const auto build = [&](const ShardedOffsets& offsets) {
    return std::get<ShardedObject>(
        make_sharded_tensors_for_checkpoint({{"_extra_state", extra}}, "", {}, offsets, self, self)
            .at("_extra_state"));
  };
  EXPECT_EQ(build({}).global_shape, (Shape{1}));
  EXPECT_EQ(build({}).global_offset, (Shape{0}));
  EXPECT_EQ(build({{1, 3, 4}, {0, 1, 2}}).global_shape, (Shape{2, 4}));  // sorted by axis
  EXPECT_EQ(build({{1, 3, 4}, {0, 1, 2}}).global_offset, (Shape{1, 3}));
  EXPECT_TRUE(throws<AssertionError>([&] { (void)build({{1, 0, 2}}); }, {"contiguous from 0"}));
}

// labels: replace_prefix_for_sharding ShardedStateDict
TEST_F(Parallel, PrefixesAreReplacedInsideOfValues) {
  const auto self = ProcessGroup::self();
  ShardedStateDict dict = make_sharded_tensors_for_checkpoint(
      {{"weight", tensor({2}, 1)}, {"_extra_state", tensor({2}, 1)}}, "layers.3.", {}, {}, self, self);
  replace_prefix_for_sharding(dict, "layers.3.", "layers.");
  EXPECT_EQ(key_of(dict.at("layers.3.weight")), "layers.weight");
  EXPECT_EQ(key_of(dict.at("layers.3._extra_state")), "layers._extra_state");
  EXPECT_TRUE(throws<ValueError>([&] { replace_prefix_for_sharding(dict, "layers.3.", "x."); },
                                 {"layers.weight", "layers.3."}));
  EXPECT_TRUE(throws<KeyError>([&] { (void)dict.at("nothing"); }, {"nothing"}));
  EXPECT_FALSE(dict.contains("nothing"));
}

}  // namespace
}  // namespace kitchen
