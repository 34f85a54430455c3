#include "kitchen/parallel/launch_environment.h"
#include "kitchen/base/error.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

#include <map>

namespace kitchen {
namespace {

using testing::throws;
using Variables = std::map<std::string, std::string>;

parallel::LaunchEnvironment read(const Variables& variables) {
  return parallel::read_launch_environment([&](const std::string& name) {
    const auto entry = variables.find(name);
    return entry == variables.end() ? std::nullopt : std::optional<std::string>(entry->second);
  });
}

// labels: launch_environment P29
TEST(LaunchEnvironment, BothVariablesOrNone) {
  EXPECT_FALSE(read({}).is_set);
  EXPECT_EQ(read({}).world_size, 1);
  const auto found = read({{"RANK", "1"}, {"WORLD_SIZE", "2"}});
  EXPECT_TRUE(found.is_set);
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.world_size, 2);
}

// labels: launch_environment P29
TEST(LaunchEnvironment, WhatIsWrongIsNamedWithItsValue) {
  const auto refused = [](const Variables& variables, const std::vector<std::string>& phrases) {
    return throws<ValueError>([&] { (void)read(variables); }, phrases);
  };
  EXPECT_TRUE(refused({{"WORLD_SIZE", "2"}}, {"WORLD_SIZE=\"2\"", "RANK is not"}));
  EXPECT_TRUE(refused({{"RANK", "0"}}, {"RANK=\"0\"", "WORLD_SIZE is not"}));
  EXPECT_TRUE(
      refused({{"RANK", "2"}, {"WORLD_SIZE", "2"}}, {"RANK=\"2\"", "0 to WORLD_SIZE - 1 = 1"}));
  for (const char* text : {"two", "", "2x", "0", "-1", "99999999999"}) {
    EXPECT_TRUE(refused({{"RANK", "0"}, {"WORLD_SIZE", text}},
                        {"WORLD_SIZE=\"" + std::string(text) + "\""}));
  }
}

// labels: launch_environment P21 P29
TEST(LaunchEnvironment, MpiAndTheVariablesMustAgree) {
  const auto found = read({{"RANK", "1"}, {"WORLD_SIZE", "4"}});
  EXPECT_NO_THROW(parallel::require_same_world(found, 1, 4));
  EXPECT_NO_THROW(parallel::require_same_world(read({}), 1, 2));
  EXPECT_TRUE(throws<ValueError>([&] { parallel::require_same_world(found, 1, 2); },
                                 {"WORLD_SIZE is 4", "2 ranks", "mpirun -n 4"}));
  EXPECT_TRUE(throws<ValueError>([&] { parallel::require_same_world(found, 0, 4); },
                                 {"RANK is 1", "rank 0"}));
}

}  // namespace
}  // namespace kitchen
