#include "support/child_process.h"

#include <gtest/gtest.h>

#include <chrono>

namespace kitchen {
namespace {

using testing::ChildResult;
using testing::ends_with;

class MpiRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string(KITCHEN_MPI_RANK_PROGRAM).empty()) {
      GTEST_SKIP()
          << "this build found no MPI; install libopenmpi-dev and openmpi-bin and configure again";
    }
  }

  /// mpirun -n `num_ranks` rank_program `arguments`, with more ranks than cores and as root
  /// allowed.
  static ChildResult launch(int num_ranks, const std::vector<std::string>& arguments,
                            const std::vector<std::string>& variables = {}) {
    std::vector<std::string> command{"/usr/bin/env", "OMPI_ALLOW_RUN_AS_ROOT=1",
                                     "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                                     "OMPI_MCA_rmaps_base_oversubscribe=1", "OMP_NUM_THREADS=1"};
    command.insert(command.end(), variables.begin(), variables.end());
    if (num_ranks > 0) {
      for (const std::string& word :
           {std::string(KITCHEN_MPIEXEC), std::string("-n"), std::to_string(num_ranks)}) {
        command.push_back(word);
      }
    }
    command.emplace_back(KITCHEN_MPI_RANK_PROGRAM);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return testing::run_child(command);
  }

  /// As launch, and the job has ended within `seconds`.
  static ChildResult launch_within(double seconds, const std::vector<std::string>& arguments) {
    const auto start = std::chrono::steady_clock::now();
    ChildResult result = launch(2, arguments);
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
              seconds);
    return result;
  }
};

// labels: mpi ProcessGroup
TEST_F(MpiRanks, EveryCollectiveEqualsItsDefinition) {
  for (const int p : {2, 4}) EXPECT_TRUE(ends_with(launch(p, {"all_collectives"}), 0, {}));
}

// labels: mpi P25 R01
TEST_F(MpiRanks, CallsThatDifferEndTheJobWithBothValues) {
  EXPECT_TRUE(ends_with(launch_within(20, {"mismatch"}), 1,
                        {"rank 0 calls all_reduce(sum, float32, 409600)",
                         "rank 1 calls all_reduce(sum, float32, 409598)"}));
}

// labels: mpi P26
TEST_F(MpiRanks, AllToAllExchangesItsCountsFirst) {
  EXPECT_TRUE(ends_with(launch_within(20, {"uneven_all_to_all"}), 1,
                        {"to ranks [0, 4]", "from ranks [3, 0]"}));
}

// labels: mpi R01
TEST_F(MpiRanks, ALateRankEndsTheJobAfterTheDeadline) {
  EXPECT_TRUE(ends_with(launch_within(15, {"late", "500"}), 1,
                        {"rank 0 failed", "barrier over world [0, 1]", "waited 500 ms"}));
}

// labels: mpi R01
TEST_F(MpiRanks, ARankThatThrowsOrVanishesEndsTheJob) {
  EXPECT_TRUE(ends_with(launch_within(20, {"failing"}), 1, {"rank 1 failed: bad shard"}));
  // mpirun notices by itself, and may end the job before the deadline does.
  const ChildResult gone = launch_within(20, {"exits", "5000"});
  EXPECT_NE(gone.status, 0);
}

// labels: mpi P21 P29
TEST_F(MpiRanks, VariablesThatDisagreeWithMpiAreRefused) {
  EXPECT_TRUE(ends_with(launch(0, {"all_collectives"}, {"RANK=0", "WORLD_SIZE=2"}), 2,
                        {"WORLD_SIZE is 2", "MPI's world has 1"}));
  const ChildResult both = launch(2, {"all_collectives"}, {"RANK=0", "WORLD_SIZE=4"});
  EXPECT_NE(both.status, 0);
  EXPECT_NE(both.err.find("WORLD_SIZE is 4, but MPI's world has 2 ranks"), std::string::npos)
      << both.err;
  EXPECT_TRUE(
      ends_with(launch(0, {"all_collectives"}, {"WORLD_SIZE=2"}), 2, {"WORLD_SIZE=\"2\"", "RANK"}));
}

}  // namespace
}  // namespace kitchen
