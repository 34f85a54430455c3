#include "kitchen/base/rank_state.h"
#include "kitchen/parallel/mpi_communicator.h"
#include "kitchen/parallel/process_group_collection.h"
#include "parallel/collective_checks.h"

#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

/// @file  rank_program.cpp
/// @brief One MPI rank of tests/mpi/mpi_test.cpp: rank_program <check> [deadline in ms].

namespace kitchen {
namespace {

int own_rank() {
  return current_rank_state().rank();
}

Tensor floats(std::int64_t count) {
  return Tensor::zeros(default_context(), {count}, DType::float32);
}

void all_collectives() {
  testing::check_all_collectives(*world_group(), default_context());
  ParallelSizes sizes;
  sizes.tensor = 2;
  initialize_model_parallel(sizes);
  const auto groups = ProcessGroupCollection::use_mpu_process_groups();
  testing::check_all_collectives(*groups->tp, default_context());
  testing::check_all_collectives(*groups->dp, default_context());
  // gtest prints each failed expectation; this makes the process fail with it.
  if (::testing::UnitTest::GetInstance()->Failed()) throw RuntimeError("an expectation failed");
}

void mismatch() {
  (void)world_group()->all_reduce(floats(own_rank() == 0 ? 409600 : 409598));
}

void uneven_all_to_all() {
  const bool first = own_rank() == 0;
  using Rows = std::vector<std::int64_t>;
  (void)world_group()->all_to_all(floats(first ? 4 : 1), first ? Rows{0, 1} : Rows{3, 0},
                                  first ? Rows{0, 4} : Rows{1, 0});
}

void late() {
  if (own_rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(20));
  world_group()->barrier();
}

void failing() {
  if (own_rank() == 1) throw ValueError("bad shard");
  world_group()->barrier();
}

void exits() {
  if (own_rank() == 1) std::_Exit(7);
  world_group()->barrier();
}

std::optional<std::string> variable(const std::string& name) {
  const char* text = std::getenv(name.c_str());
  return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

int run(const std::string& check, std::chrono::milliseconds deadline) {
  const std::map<std::string, void (*)()> checks{{"all_collectives", &all_collectives},
                                                 {"mismatch", &mismatch},
                                                 {"uneven_all_to_all", &uneven_all_to_all},
                                                 {"late", &late},
                                                 {"failing", &failing},
                                                 {"exits", &exits}};
  parallel::MpiRankOptions options;
  options.deadline = deadline;
  options.context = testing::poisoned_context();
  options.environment = parallel::read_launch_environment(&variable);
  return parallel::run_mpi_rank(checks.at(check), options);
}

}  // namespace
}  // namespace kitchen

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const long deadline = argc > 2 ? std::atol(argv[2]) : 20000;
  try {
    return kitchen::run(argc > 1 ? argv[1] : "", std::chrono::milliseconds(deadline));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
