#include "kitchen/config/glob_matcher.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kitchen {
namespace {

// The table was made with fnmatch.fnmatchcase of Python 3.11, an implementation of independent
// origin.
const std::vector<std::string> kTexts = {"",
                                         "a",
                                         "b",
                                         "ax",
                                         "bx",
                                         "dx",
                                         "-x",
                                         "]x",
                                         "!x",
                                         "^x",
                                         "[x",
                                         "[",
                                         "a[",
                                         "*",
                                         "a*b",
                                         "ab",
                                         "abc",
                                         "axbxc",
                                         "fc2",
                                         "mlp.fc2",
                                         "FC2",
                                         "decoder.layers.1.mlp",
                                         "decoder.layers.10.mlp",
                                         "layers.1",
                                         "x9",
                                         "zx",
                                         "[!]",
                                         "[]",
                                         "\\*",
                                         "\\a",
                                         "a0",
                                         "c2",
                                         "q.mlp",
                                         "q.attn",
                                         "?",
                                         "decoder.layers.3.mlp.linear_fc1",
                                         "a/b/c",
                                         "ex"};

struct GlobRow {
  const char* pattern;
  const char* matches;  // one digit a text of kTexts
};

const std::vector<GlobRow> kRows = {
    {"*", "11111111111111111111111111111111111111"},
    {"", "10000000000000000000000000000000000000"},
    {"a", "01000000000000000000000000000000000000"},
    {"?", "01100000000101000000000000000000001000"},
    {"*fc2", "00000000000000000011000000000000000000"},
    {"*layers.1*", "00000000000000000000011100000000000000"},
    {"*layers.1.*", "00000000000000000000010000000000000000"},
    {"decoder.*.mlp.linear_fc?", "00000000000000000000000000000000000100"},
    {"[abc]x", "00011000000000000000000000000000000000"},
    {"[a-c]x", "00011000000000000000000000000000000000"},
    {"[!a-c]x", "00000111111000000000000001000000000001"},
    {"[]]x", "00000001000000000000000000000000000000"},
    {"[!]]x", "00011110111000000000000001000000000001"},
    {"[x", "00000000001000000000000000000000000000"},
    {"a[", "00000000000010000000000000000000000000"},
    {"[*]", "00000000000001000000000000000000000000"},
    {"a[*]b", "00000000000000100000000000000000000000"},
    {"*[0-9]", "00000000000000000011100110000011000100"},
    {"[z-a]x", "00000000000000000000000000000000000000"},
    {"[!z-a]x", "00011111111000000000000001000000000001"},
    {"[a-]x", "00010010000000000000000000000000000000"},
    {"[-a]x", "00010010000000000000000000000000000000"},
    {"[^a]x", "00010000010000000000000000000000000000"},
    {"[a-c-e]x", "00011010000000000000000000000000000001"},
    {"\\*", "00000000000000000000000000001100000000"},
    {"a*b*c", "00000000000000001100000000000000000010"},
    {"**a**", "01010000000010111100011100000110010110"},
    {"[!]", "00000000000000000000000000100000000000"},
    {"[]", "00000000000000000000000000010000000000"},
    {"[a-c0-2]?", "00011000000010010000000000000011000000"},
    {"*.[!m]*", "00000000000000000001011100000000010100"},
    {"[[]x", "00000000001000000000000000000000000000"},
    {"[?]", "00000000000000000000000000000000001000"},
};

// labels: config.GlobMatcher RecipeMatching
TEST(GlobMatcher, AgreesWithFnmatchOnEveryPairOfTheTable) {
  for (const GlobRow& row : kRows) {
    const GlobPattern pattern(row.pattern);
    for (std::size_t i = 0; i < kTexts.size(); ++i) {
      EXPECT_EQ(pattern.matches(kTexts[i]), row.matches[i] == '1')
          << "pattern " << row.pattern << " text " << kTexts[i];
    }
  }
}

// labels: config.GlobMatcher C13
TEST(GlobMatcher, NumberWithoutADotTakesTheTensToo) {
  const GlobMatcher loose("*layers.1*", "bf16");
  const GlobMatcher strict("*layers.1.*", "bf16");
  std::vector<int> loosely;
  std::vector<int> strictly;
  for (int layer = 0; layer < 12; ++layer) {
    const MatchContext context{"decoder.layers." + std::to_string(layer) + ".mlp.linear_fc1",
                               layer};
    if (loose.match(context)) loosely.push_back(layer);
    if (strict.match(context)) strictly.push_back(layer);
  }
  EXPECT_EQ(loosely, (std::vector<int>{1, 10, 11}));
  EXPECT_EQ(strictly, (std::vector<int>{1}));
}

// labels: config.GlobMatcher
TEST(GlobMatcher, GivesItsKeyAndDescribesItself) {
  const GlobMatcher matcher("*fc2", "bf16");
  EXPECT_EQ(matcher.pattern, "*fc2");
  EXPECT_EQ(matcher.config_key, "bf16");
  EXPECT_EQ(matcher.match({"mlp.linear_fc2", std::nullopt}), "bf16");
  EXPECT_EQ(matcher.match({"mlp.linear_fc1", std::nullopt}), std::nullopt);
  EXPECT_NE(matcher.repr().find("*fc2"), std::string::npos);
  EXPECT_NE(matcher.repr().find("bf16"), std::string::npos);
}

// labels: config.GlobMatcher
TEST(GlobMatcher, ManyStarsTakeNoExponentialTime) {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "*a";
  EXPECT_FALSE(GlobPattern(pattern + "b").matches(std::string(20000, 'a')));
  EXPECT_TRUE(GlobPattern(pattern).matches(std::string(20000, 'a')));
}

// labels: config.GlobMatcher C12
TEST(GlobMatcher, CoversOnlyWhatItIsProvenToTake) {
  const auto covers = [](const char* a, const char* b) {
    return GlobPattern(a).covers(GlobPattern(b));
  };
  EXPECT_TRUE(covers("*", "*layers.42.*"));
  EXPECT_TRUE(covers("*", ""));
  EXPECT_TRUE(covers("*fc2", "*fc2"));
  EXPECT_TRUE(covers("*mlp*", "*layers.1.mlp.linear_fc1"));
  EXPECT_TRUE(covers("*layers.?.*", "*layers.[0-9].mlp"));
  EXPECT_TRUE(covers("[a-z]*", "[c-e]x?"));
  EXPECT_FALSE(covers("*layers.42.*", "*"));
  EXPECT_FALSE(covers("*fc2", "*fc?"));
  EXPECT_FALSE(covers("?", ""));
  EXPECT_FALSE(covers("?*", "*"));
  EXPECT_FALSE(covers("[a-c]", "[a-d]"));
}

// labels: config.GlobMatcher C12
TEST(GlobMatcher, CoverNeverContradictsTheTable) {
  for (const GlobRow& general : kRows) {
    for (const GlobRow& special : kRows) {
      if (!GlobPattern(general.pattern).covers(GlobPattern(special.pattern))) continue;
      for (std::size_t i = 0; i < kTexts.size(); ++i) {
        EXPECT_FALSE(special.matches[i] == '1' && general.matches[i] == '0')
            << general.pattern << " does not cover " << special.pattern << ": " << kTexts[i];
      }
    }
  }
}

}  // namespace
}  // namespace kitchen
