#include "kitchen/parallel/rank_grid.h"
#include "kitchen/base/error.h"
#include "support/expect_error.h"
#include "support/ranks.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

using Ranks = std::vector<int>;
using testing::throws;

ParallelSizes sizes(int tensor, int expert = 1, int expert_tensor = 0) {
  ParallelSizes s;
  s.tensor = tensor;
  s.expert = expert;
  s.expert_tensor = expert_tensor;
  return s;
}

// labels: RankGrid
TEST(RankGrid, DenseGroupsAreTensorNeighboursAndDataStrides) {
  const RankGrid grid(8, sizes(2));
  EXPECT_EQ(grid.tp(5), (Ranks{4, 5}));
  EXPECT_EQ(grid.dp(5), (Ranks{1, 3, 5, 7}));
  EXPECT_EQ(grid.data_size(), 4);
  EXPECT_EQ(grid.world(), (Ranks{0, 1, 2, 3, 4, 5, 6, 7}));
}

// labels: RankGrid
TEST(RankGrid, ExpertGroupsHaveSizesOfTheirOwn) {
  const RankGrid grid(8, sizes(4, 2, 2));
  EXPECT_EQ(grid.expt_tp(6), (Ranks{6, 7}));
  EXPECT_EQ(grid.ep(6), (Ranks{4, 6}));
  EXPECT_EQ(grid.tp_ep(6), (Ranks{4, 5, 6, 7}));
  EXPECT_EQ(grid.expt_dp(6), (Ranks{2, 6}));
  EXPECT_EQ(grid.expert_data_size(), 2);
  EXPECT_EQ(RankGrid(4, sizes(2)).expt_tp(3), (Ranks{2, 3}));  // as the tensor parallel size
}

// labels: RankGrid
TEST(RankGrid, EveryAxisPartitionsTheWorld) {
  for (const auto& s : {sizes(1), sizes(2), sizes(4, 2, 1), sizes(3, 2, 2), sizes(2, 4, 3)}) {
    const RankGrid grid(24, s);
    for (const auto axis : {&RankGrid::tp, &RankGrid::dp, &RankGrid::ep, &RankGrid::expt_tp,
                            &RankGrid::tp_ep, &RankGrid::expt_dp}) {
      for (int rank = 0; rank < 24; ++rank) {
        const Ranks group = (grid.*axis)(rank);
        EXPECT_EQ(std::count(group.begin(), group.end(), rank), 1);
        for (const int member : group) EXPECT_EQ((grid.*axis)(member), group);
      }
    }
  }
}

// labels: RankGrid P19
TEST(RankGrid, SizesThatDoNotFitAreRefusedWithBothNumbers) {
  EXPECT_TRUE(throws<ValueError>([] { RankGrid(1, sizes(2)); },
                                 {"world size 1 is not divisible by TP x PP x CP = 2"}));
  EXPECT_TRUE(throws<ValueError>([] { RankGrid(6, sizes(2, 4, 1)); },
                                 {"world size 6", "ETP x EP x PP = 4"}));
  EXPECT_TRUE(throws<ValueError>([] { RankGrid(4, sizes(0)); }, {"tensor parallel size is 0"}));
  ParallelSizes deep;
  deep.pipeline = 2;
  EXPECT_TRUE(
      throws<NotImplementedError>([&] { RankGrid(4, deep); }, {"pipeline parallel size 2"}));
}

// labels: threads ProcessGroupCollection
TEST(RankGrid, DefaultGroupsOfARankFollowIt) {
  testing::on_ranks(4, [](int rank) {
    EXPECT_TRUE(throws<RuntimeError>([] { initialize_model_parallel(sizes(2)); },
                                     {"initialised already", "destroy_model_parallel"}));
    destroy_model_parallel();
    initialize_model_parallel(sizes(2, 2, 1));
    const auto groups = ProcessGroupCollection::use_mpu_process_groups();
    const RankGrid grid(4, sizes(2, 2, 1));
    EXPECT_EQ(groups->tp->ranks(), grid.tp(rank));
    EXPECT_EQ(groups->dp->ranks(), grid.dp(rank));
    EXPECT_EQ(groups->ep->ranks(), grid.ep(rank));
    EXPECT_EQ(groups->expt_dp->ranks(), grid.expt_dp(rank));
    EXPECT_EQ(groups->expt_tp->ranks(), (Ranks{rank}));
    EXPECT_EQ(groups->pp->ranks(), (Ranks{rank}));
    EXPECT_EQ(groups->tp_dp_cp->size(), 4);
    EXPECT_EQ(groups->ep->name(), "ep");
    EXPECT_EQ(groups->tp_cp, groups->tp);
    EXPECT_EQ(get_tensor_model_parallel_group_if_none(nullptr, true), groups->expt_tp);
  });
}

// labels: threads RngTracker P13
TEST(RankGrid, SeedsFollowTheDefaultGroups) {
  testing::on_ranks(4, [](int rank) {
    destroy_model_parallel();
    initialize_model_parallel(sizes(2, 2, 1));
    model_parallel_cuda_manual_seed(7);
    const auto& states = get_cuda_rng_tracker().get_states();
    const auto seed_of = [&](const std::string& name) {
      return static_cast<int>(states.at(name).seed);
    };
    EXPECT_EQ(seed_of("model-parallel-rng"), 7 + 2718 + rank % 2);
    EXPECT_EQ(seed_of("expert-parallel-rng"), 7 + 1024 + 100 * (rank % 2));
    EXPECT_EQ(seed_of("data-parallel-rng"), 7);
  });
}

}  // namespace
}  // namespace kitchen
