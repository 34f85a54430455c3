#include "kitchen/base/nearest_name.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

// labels: base.nearest_name C01 C16
TEST(NearestName, FindsTypingErrorsAndNothingElse) {
  const std::vector<std::string> known = {"recipe_idx", "kitchen_config_type", "pattern"};
  EXPECT_EQ(did_you_mean("patern", known), "did you mean \"pattern\"?");
  EXPECT_EQ(did_you_mean("recipe_index", known), "did you mean \"recipe_idx\"?");
  EXPECT_EQ(did_you_mean("Kitchen-Config-Type", known), "did you mean \"kitchen_config_type\"?");
  EXPECT_EQ(did_you_mean("zzz", known), "");
  EXPECT_EQ(did_you_mean("", known), "");
  EXPECT_EQ(did_you_mean("pattern", {}), "");
  EXPECT_TRUE(nearest_names(std::string(100000, 'a'), known).empty());
  EXPECT_EQ(nearest_names("aab", {"aaa", "aab", "abb", "aac", "bbb"}),
            (std::vector<std::string>{"aab", "aaa", "abb"}));
}

// labels: base.nearest_name
TEST(NearestName, DistanceCountsInsertionsRemovalsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("patern", "pattern"), 1);
  EXPECT_EQ(edit_distance("recipe", "recpie"), 1);
}

}  // namespace
}  // namespace kitchen
