#include "kitchen/config/yaml.h"

#include "kitchen/base/error.h"
#include "support/expect_error.h"
#include "support/temporary_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace kitchen {
namespace {

using testing::TemporaryFile;
using testing::throws;

ConfigDict parse_dict(const std::string& text) {
  const ConfigValue value = parse_yaml(text, "test.yaml");
  const auto* dict = value.get_if<ConfigDict>();
  EXPECT_NE(dict, nullptr) << text;
  return dict != nullptr ? *dict : ConfigDict();
}

// labels: C09 config.yaml
TEST(Yaml, PlainScalarsFollowTheCoreSchemaWithYesAndNo) {
  const std::vector<std::pair<const char*, ConfigValue>> table = {
      {"", nullptr},
      {"~", nullptr},
      {"null", nullptr},
      {"NULL", nullptr},
      {"true", true},
      {"False", false},
      {"yes", true},
      {"No", false},
      {"on", "on"},
      {"off", "off"},
      {"y", "y"},
      {"tRue", "tRue"},
      {"0", 0},
      {"-17", -17},
      {"+5", 5},
      {"010", 10},
      {"0o17", 15},
      {"0x10", 16},
      {"0xfF", 255},
      {"-0x10", "-0x10"},
      {"1e-4", 1e-4},
      {"1e-8", 1e-8},
      {"1.0e-4", 1e-4},
      {"1.", 1.0},
      {".5", 0.5},
      {"-2.5E+3", -2500.0},
      {"+.5e1", 5.0},
      {"1_000", "1_000"},
      {"1:30", "1:30"},
      {".", "."},
      {"1e", "1e"},
      {"e5", "e5"},
      {"1.2.3", "1.2.3"},
      {"-", "-"},
      {"--1", "--1"},
      {"+-1", "+-1"},
      {"0x", "0x"},
      {"0o8", "0o8"},
      {"1e5.0", "1e5.0"},
      {"nan", "nan"},
      {"inf", "inf"},
      {"fp8", "fp8"},
      {"2026-01-01", "2026-01-01"},
      {".inf", std::numeric_limits<double>::infinity()},
      {"-.INF", -std::numeric_limits<double>::infinity()},
      {"9223372036854775807", std::numeric_limits<std::int64_t>::max()},
      {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()},
  };
  for (const auto& [text, expected] : table) {
    EXPECT_EQ(resolve_plain_scalar(text), expected) << "scalar: " << text;
  }
  EXPECT_TRUE(std::isnan(*resolve_plain_scalar(".nan").get_if<double>()));
  EXPECT_TRUE(throws<ValueError>([] { (void)resolve_plain_scalar("9223372036854775808"); },
                                 {"does not fit 64 bits"}));
  EXPECT_TRUE(throws<ValueError>([] { (void)parse_yaml("a: 1\nb: 1e999\n", "f.yaml"); },
                                 {"f.yaml, line 2", "1e999"}));
}

// labels: C09 config.yaml
TEST(Yaml, QuotedAndTaggedScalarsKeepTheirType) {
  const ConfigDict dict = parse_dict(
      "a: \"2\"\nb: '2'\nc: 2\nd: \"true\"\ne: !!str 2\nf: !!int 2\ng: \"\"\nh: |\n  12\ni: ~\n"
      "j: '~'\n");
  EXPECT_EQ(dict.at("a"), ConfigValue("2"));
  EXPECT_EQ(dict.at("b"), ConfigValue("2"));
  EXPECT_EQ(dict.at("c"), ConfigValue(2));
  EXPECT_EQ(dict.at("d"), ConfigValue("true"));
  EXPECT_EQ(dict.at("e"), ConfigValue("2"));
  EXPECT_EQ(dict.at("f"), ConfigValue(2));
  EXPECT_EQ(dict.at("g"), ConfigValue(""));
  EXPECT_EQ(dict.at("h"), ConfigValue("12\n"));
  EXPECT_EQ(dict.at("i"), ConfigValue());
  EXPECT_EQ(dict.at("j"), ConfigValue("~"));
  EXPECT_TRUE(throws<ValueError>([] { (void)parse_yaml("a: !!int x\n", "f.yaml"); }, {"line 1"}));
  EXPECT_TRUE(throws<ValueError>([] { (void)parse_yaml("a: !mine 1\n", "f.yaml"); }, {"!mine"}));
}

// labels: config.yaml
TEST(Yaml, ReadsBlockAndFlowCollectionsInOrder) {
  const ConfigDict dict = parse_dict(
      "# a comment\nz: {b: 1, a: [1, two, 3.0]}\ny:\n  - 1\n  - {k: v}\n  -\nx: {}\nw: []\n");
  EXPECT_EQ(dict.repr(),
            "{z: {b: 1, a: [1, \"two\", 3.0]}, y: [1, {k: \"v\"}, null], x: {}, w: []}");
}

// labels: config.yaml C23
TEST(Yaml, ValuesRememberFileAndLine) {
  const ConfigDict dict =
      parse_dict("configs:\n  fp8:\n    type: x\n    list:\n      - 1\n      - 2\n");
  const auto* configs = dict.at("configs").get_if<ConfigDict>();
  const auto* fp8 = configs->at("fp8").get_if<ConfigDict>();
  EXPECT_EQ(to_string(dict.location()), "test.yaml, line 1");
  // A collection is where its key stands, a scalar where it stands itself.
  EXPECT_EQ(to_string(fp8->location()), "test.yaml, line 2");
  EXPECT_EQ(to_string(fp8->at("type").location()), "test.yaml, line 3");
  EXPECT_EQ(to_string(fp8->key_location("list")), "test.yaml, line 4");
  EXPECT_EQ(fp8->at("list").get_if<ConfigList>()->back().location().line, 6);
  EXPECT_FALSE(fp8->key_location("none").known());
}

// labels: C03
TEST(Yaml, DuplicateKeysAreRefusedWithBothLines) {
  EXPECT_TRUE(throws<ValueError>(
      [] {
        (void)parse_yaml("configs:\n\n  fp8: {a: 1}\n\n\n\n\n\n  fp8: {a: 2}\n", "recipe.yaml");
      },
      {"recipe.yaml", "duplicate key fp8, lines 3 and 9"}));
  EXPECT_TRUE(throws<ValueError>([] { (void)parse_yaml("{a: 1, a: 1}", "f"); },
                                 {"duplicate key a, lines 1 and 1"}));
}

// labels: C07
TEST(Yaml, AnchorsWorkAndMergeKeysAreRefused) {
  const ConfigDict dict = parse_dict(
      "base: &b {kitchen_config_type: QLinearParams, recipe_idx: 2}\nsame: *b\nlist: &l [1]\n"
      "twice: [*l, *l]\n");
  EXPECT_EQ(dict.at("same"), dict.at("base"));
  EXPECT_EQ(dict.at("twice").repr(), "[[1], [1]]");
  EXPECT_TRUE(throws<ValueError>(
      [] { (void)parse_yaml("base: &b {a: 2}\nmine:\n  <<: *b\n  a: 3\n", "f.yaml"); },
      {"f.yaml, line 3", "merge keys are not supported"}));
  EXPECT_TRUE(throws<ValueError>([] { (void)parse_yaml("a: &x [*x]\n", "f.yaml"); }, {"line 1"}));
}

// labels: C07 config.yaml
TEST(Yaml, NestedAliasesCannotExhaustMemory) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 12; ++level) {
    const std::string last = "*a" + std::to_string(level - 1);
    text += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [" + last;
    for (int i = 0; i < 9; ++i) text += ", " + last;
    text += "]\n";
  }
  EXPECT_TRUE(throws<ValueError>([&] { (void)parse_yaml(text, "bomb.yaml"); },
                                 {"bomb.yaml, line 5", "100000"}));
}

// labels: config.yaml
TEST(Yaml, SyntaxErrorsTellFileAndLine) {
  EXPECT_TRUE(throws<ValueError>([] { (void)parse_yaml("a: 1\nb: [1, 2\nc: }\n", "bad.yaml"); },
                                 {"bad.yaml, line 3", "syntax error"}));
  EXPECT_TRUE(throws<ValueError>([] { (void)parse_yaml("a: 1\n b: 2\n", "bad.yaml"); },
                                 {"bad.yaml, line 2"}));
  EXPECT_TRUE(throws<ValueError>([] { (void)parse_yaml("a: *nowhere\n", "bad.yaml"); },
                                 {"bad.yaml, line 1"}));
  EXPECT_TRUE(throws<ValueError>([] { (void)parse_yaml("? [a, b]\n: 1\n", "bad.yaml"); },
                                 {"bad.yaml, line 1", "key must be text"}));
  EXPECT_TRUE(throws<ValueError>([] { (void)parse_yaml(std::string(3000, '['), "deep.yaml"); },
                                 {"deep.yaml, line 1"}));
}

// labels: config.yaml
TEST(Yaml, SecondDocumentIsRefused) {
  EXPECT_TRUE(throws<ValueError>([] { (void)parse_yaml("a: 1\n---\nb: 2\n", "two.yaml"); },
                                 {"two.yaml, line 2", "second document"}));
  EXPECT_EQ(parse_yaml("---\na: 1\n...\n", "one.yaml").repr(), "{a: 1}");
}

// labels: C05
TEST(Yaml, EmptyDocumentsAreATypeErrorWithTheFileName) {
  for (const char* text : {"", "# only a comment\n", "---\n", "--- # nothing\n...\n", "~\n"}) {
    const TemporaryFile file("empty.yaml", text);
    const auto read = [&] { (void)parse_yaml_mapping_file(file.path(), "a recipe"); };
    EXPECT_TRUE(throws<TypeError>(read, {"empty.yaml", "is empty", "a recipe"})) << text;
  }
  const TemporaryFile list("list.yaml", "- 1\n- 2\n");
  EXPECT_TRUE(throws<TypeError>([&] { (void)parse_yaml_mapping_file(list.path(), "a recipe"); },
                                {"list.yaml", "[1, 2] (list)", "a recipe"}));
}

// labels: config.yaml
TEST(Yaml, AnyTextParsesOrThrowsAnErrorOfOurs) {
  const std::string seed =
      "base: &b {kitchen_config_type: QLinearParams, recipe_idx: 2}\n"
      "configs:\n  fp8: *b\n  list: [1, 'two', \"3\", ~]\n  text: |\n    line\n"
      "matchers:\n  all: {type: glob, pattern: \"*\", config: fp8, enabled: true} # end\n";
  const std::string letters = "\n\t :-{}[]&*?|>!%@`'\"#,<~0aeE.\\\x01\x80\xff";
  std::uint64_t state = 0x9E3779B97F4A7C15u;
  const auto next = [&state](std::size_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state >> 33) % bound;
  };
  int parsed = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = seed;
    for (std::size_t edits = 1 + next(4); edits > 0; --edits) {
      const std::size_t at = next(text.size());
      switch (next(3)) {
        case 0:
          text[at] = letters[next(letters.size())];
          break;
        case 1:
          text.insert(at, 1, letters[next(letters.size())]);
          break;
        default:
          text.erase(at, 1 + next(5));
          break;
      }
    }
    try {
      (void)parse_yaml(text, "fuzz.yaml");
      ++parsed;
    } catch (const ValueError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("fuzz.yaml"), std::string::npos) << what;
      EXPECT_EQ(what.find("bad conversion"), std::string::npos) << what;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << " for:\n" << text;
    }
  }
  EXPECT_GT(parsed, 100);
  EXPECT_LT(parsed, 2900);
}

// labels: config.yaml
TEST(Yaml, UnreadableFilesAreAnIOErrorWithThePath) {
  EXPECT_TRUE(throws<IOError>([] { (void)parse_yaml_file("/nowhere/recipe.yaml"); },
                              {"/nowhere/recipe.yaml"}));
  // A parent that is a file: unreadable for every user.
  const TemporaryFile file("parent.yaml", "a: 1\n");
  EXPECT_TRUE(
      throws<IOError>([&] { (void)parse_yaml_file(file.path() + "/child.yaml"); }, {"child.yaml"}));
  EXPECT_TRUE(throws<IOError>([&] { (void)parse_yaml_file(file.folder()); }, {file.folder()}));
}

}  // namespace
}  // namespace kitchen
