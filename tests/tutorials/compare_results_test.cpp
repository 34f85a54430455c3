#include "common/compare_results.h"

#include "support/temporary_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace kitchen::tutorials {
namespace {

using kitchen::testing::TemporaryFile;

constexpr const char* kExpected =
    R"({"numbers": {"a": {"value": 2.0, "kind": "exact", "relative": 0.0},
                    "b": {"value": 4.0, "kind": "within", "relative": 0.01}}, "figures": []})";

/// Numbers a and b of one run, as JSON text, and a time.
std::string results(const std::string& a, const std::string& b) {
  return R"({"numbers": {"a": {"value": )" + a + R"(, "kind": "exact"}, "b": {"value": )" + b +
         R"(, "kind": "within"}, "t": {"value": 3, "kind": "machine"}}, "figures": []})";
}

std::vector<std::string> mistakes_of(const std::string& text) {
  const TemporaryFile found("results.json", text);
  const TemporaryFile expected("expected.json", kExpected);
  return compare_results(found.folder(), expected.path());
}

// labels: tutorials.compare_results
TEST(CompareResults, AcceptsEqualNumbersAndIgnoresTimes) {
  EXPECT_TRUE(mistakes_of(results("2.0", "4.03")).empty());
}

// labels: tutorials.compare_results
TEST(CompareResults, FindsEachKindOfDifference) {
  EXPECT_EQ(mistakes_of(results("2.0000000001", "4.0")).size(), 1u);
  EXPECT_EQ(mistakes_of(results("2.0", "4.05")).size(), 1u);
  EXPECT_EQ(mistakes_of(R"({"numbers": {}, "figures": []})").size(), 2u);
  EXPECT_EQ(mistakes_of(R"({"numbers": {"a": {"value": 2.0, "kind": "exact"},
      "b": {"value": 4.0, "kind": "within"}, "c": {"value": 1, "kind": "exact"}}, "figures": []})")
                .size(),
            1u);
}

// labels: tutorials.compare_results
TEST(CompareResults, NotANumberNeverPasses) {
  EXPECT_FALSE(mistakes_of(results("null", "4.0")).empty());
  EXPECT_FALSE(mistakes_of(results("2.0", "null")).empty());
}

// labels: tutorials.compare_results
TEST(CompareResults, FiguresMustBeWellFormedAndTitled) {
  const std::string run = R"({"numbers": {}, "figures": [{"file": "f.svg", "title": "t"}]})";
  const TemporaryFile found("results.json", run);
  const TemporaryFile expected("expected.json", run);
  const auto mistakes_with = [&](const std::string& svg) {
    std::ofstream(found.folder() + "/f.svg") << svg;
    return compare_results(found.folder(), expected.path()).size();
  };
  EXPECT_EQ(mistakes_with("<svg><title>t</title></svg>"), 0u);
  EXPECT_EQ(mistakes_with("<svg></svg>"), 1u);
  EXPECT_EQ(mistakes_with("<svg><title>t</svg>"), 1u);
}

}  // namespace
}  // namespace kitchen::tutorials
