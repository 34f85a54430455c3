#include "kitchen/config/config_value.h"

#include "kitchen/base/error.h"
#include "kitchen/config/config_reader.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

namespace kitchen {
namespace {

using testing::throws;

// labels: config.ConfigDict
TEST(ConfigDict, KeepsInsertionOrderAndAnswersByKey) {
  ConfigDict dict{{"zeta", 1}, {"alpha", "x"}, {"mid", nullptr}};
  dict.set("beta", 2.5);
  dict.set("alpha", true);
  EXPECT_EQ(dict.ordered_keys(), (std::vector<std::string>{"zeta", "alpha", "mid", "beta"}));
  EXPECT_EQ(dict.keys(), (std::set<std::string>{"alpha", "beta", "mid", "zeta"}));
  EXPECT_EQ(dict.repr(), "{zeta: 1, alpha: true, mid: null, beta: 2.5}");
  EXPECT_TRUE(dict.contains("mid"));
  EXPECT_FALSE(dict.contains("Mid"));
  EXPECT_EQ(dict.get("none"), std::nullopt);
  EXPECT_EQ(*dict.get("zeta"), ConfigValue(1));
  EXPECT_TRUE(dict.erase("zeta"));
  EXPECT_FALSE(dict.erase("zeta"));
  EXPECT_EQ(dict.begin()->key, "alpha");
}

// labels: config.ConfigDict
TEST(ConfigDict, MissingKeyIsNamed) {
  const ConfigDict dict{{"recipe_idx", 1}};
  EXPECT_TRUE(throws<KeyError>([&] { (void)dict.at("recipe_id"); },
                               {"recipe_id", "did you mean \"recipe_idx\"?"}));
  EXPECT_TRUE(throws<KeyError>([] { (void)ConfigDict{{"a", 1}, {"a", 2}}; }, {"duplicate key a"}));
}

// labels: config.ConfigDict
TEST(ConfigDict, CopiesAreDeep) {
  ConfigDict inner{{"x", 1}};
  ConfigDict outer{{"inner", inner}, {"list", ConfigList{inner}}};
  const ConfigDict copy = outer;
  ConfigDict changed = *outer.at("inner").get_if<ConfigDict>();
  changed.set("x", 2);
  outer.set("inner", changed);
  EXPECT_EQ(copy.at("inner"), ConfigValue(inner));
  EXPECT_NE(outer, copy);
}

// labels: config.ConfigValue C17
TEST(ConfigValue, AlternativesNeverConvertIntoEachOther) {
  EXPECT_NE(ConfigValue(true), ConfigValue(1));
  EXPECT_NE(ConfigValue(2.0), ConfigValue(2));
  EXPECT_NE(ConfigValue("2"), ConfigValue(2));
  EXPECT_NE(ConfigValue(), ConfigValue(false));
  EXPECT_EQ(ConfigValue(true).get_if<std::int64_t>(), nullptr);
  EXPECT_EQ(ConfigValue("text").type_name(), "string");
  EXPECT_EQ(ConfigValue(ConfigList{}).type_name(), "list");
  EXPECT_EQ(ConfigValue(ConfigDict{}).type_name(), "mapping");
  EXPECT_EQ(ConfigValue(2.0).repr(), "2.0");
  EXPECT_EQ(ConfigValue("a \"b\"").repr(), "\"a \\\"b\\\"\"");
}

// labels: config.ConfigValue
TEST(ConfigValue, EqualityIgnoresLocationAndOrderOfKeys) {
  ConfigValue here(7);
  here.set_location({std::make_shared<const std::string>("a.yaml"), 3});
  EXPECT_EQ(here, ConfigValue(7));
  EXPECT_EQ(describe(here), "7 (integer) (a.yaml, line 3)");
  EXPECT_EQ((ConfigDict{{"a", 1}, {"b", 2}}), (ConfigDict{{"b", 2}, {"a", 1}}));
  EXPECT_NE((ConfigDict{{"a", 1}}), (ConfigDict{{"a", 1}, {"b", 2}}));
}

// labels: config.read_number C09
TEST(ConfigReader, RefusesTheWrongTypeWithTheNameOfTheKey) {
  const ConfigDict dict{{"lr", "1_000"}, {"steps", 10}, {"ratio", 0.5}, {"on", true}};
  EXPECT_TRUE(throws<TypeError>([&] { (void)read_number(dict, "lr", 0); },
                                {"lr must be a number", "\"1_000\" (string)"}));
  EXPECT_EQ(read_number(dict, "steps", 0), 10.0);
  EXPECT_EQ(read_number(dict, "absent", 3.5), 3.5);
  EXPECT_TRUE(throws<TypeError>([&] { (void)read_integer(dict, "ratio", 0); }, {"ratio", "0.5"}));
  EXPECT_TRUE(throws<TypeError>([&] { (void)read_integer(dict, "on", 0); }, {"on", "true"}));
  EXPECT_TRUE(throws<TypeError>([&] { (void)read_bool(dict, "steps", false); }, {"steps", "bool"}));
  EXPECT_TRUE(throws<TypeError>([&] { (void)read_mapping(dict, "lr"); }, {"lr", "a mapping"}));
  EXPECT_TRUE(throws<KeyError>(
      [&] {
        refuse_unknown_keys(dict, {"lr", "steps", "ratios", "on"}, "optimizer");
      },
      {"optimizer", "ratio", "did you mean \"ratios\"?"}));
}

// labels: config.ConfigValue
TEST(ConfigValue, ALongValueIsCutInAMessageButNotInsideACharacter) {
  std::string text = "x";  // the quote and this byte put each character across an even place
  for (int i = 0; i < 300; ++i) text += "\u00e4";
  const std::string message = describe(ConfigValue(text));
  EXPECT_EQ(message, "\"x" + text.substr(1, 198) + "... (string)");
  const std::string odd = describe(ConfigValue("xy" + text.substr(1)));
  EXPECT_EQ(odd, "\"xy" + text.substr(1, 196) + "... (string)");
  EXPECT_EQ(describe(ConfigValue("short")), "\"short\" (string)");
}

}  // namespace
}  // namespace kitchen
