#include "app/program.h"
#include "kitchen/train/train_settings.h"

#include <gtest/gtest.h>

#include <regex>
#include <sstream>

namespace kitchen::testing {
namespace {

// labels: app.program
TEST(CommandLine, HelpIsCompleteAndFitsATerminal) {
  const ChildResult top = run_program({"--help"});
  EXPECT_EQ(top.status, 0);
  for (const char* name : {"train", "generate", "recipes", "inspect", "report", "bench", "doctor"}) {
    EXPECT_NE(top.out.find(std::string("\n  ") + name + " "), std::string::npos) << name;
  }
  const ChildResult help = run_program({"train", "--help"});
  EXPECT_EQ(help.status, 0);
  for (const train::Setting& setting : train::setting_table()) {
    if (std::string(setting.name) == "precision") continue;  // --bf16 and --fp32 stand for it
    // A long name has a line of its own.
    const std::regex listed(std::string("\n  --") + setting.name + "[ \n]");
    EXPECT_TRUE(std::regex_search(help.out, listed)) << setting.name;
  }
  for (const char* flag : {"--bf16", "--fp32", "--fp16", "--yaml-cfg"}) {
    EXPECT_NE(help.out.find(flag), std::string::npos) << flag;
  }
  std::istringstream lines(help.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 96u) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
  }
}

// labels: app.program C01
TEST(CommandLine, UnknownFlagsAndSubcommandsNameTheNearestOne) {
  EXPECT_TRUE(ends_with(
      run_program({"train", "--num-layres", "4"}), 2,
      {"unknown flag --num-layres", "did you mean \"--num-layers\"", "kitchen train --help"}));
  EXPECT_TRUE(ends_with(run_program({"train", "--num_layers=4"}), 2,
                        {"unknown flag --num_layers", "did you mean \"--num-layers\""}));
  EXPECT_TRUE(ends_with(run_program({"trian"}), 2,
                        {"unknown subcommand 'trian'", "did you mean \"train\""}));
  EXPECT_TRUE(
      ends_with(run_program({"recipes", "chek", "x"}), 2, {"'chek'", "did you mean \"check\""}));
  EXPECT_TRUE(ends_with(run_program({}), 2, {"a subcommand is missing", "train, generate"}));
  EXPECT_TRUE(ends_with(run_program({"train", "num-layers"}), 2,
                        {"unexpected argument 'num-layers'", "did you mean \"--num-layers\""}));
}

// labels: app.program C09
TEST(CommandLine, ValuesOfTheWrongKindNameFlagAndValue) {
  EXPECT_TRUE(ends_with(run_program({"train", "--num-layers", "four"}), 2,
                        {"--num-layers is 'four', expected an integer"}));
  EXPECT_TRUE(
      ends_with(run_program({"train", "--lr", "fast"}), 2, {"--lr is 'fast', expected a number"}));
  for (const char* flag : {"--seed", "--num-layers", "--kitchen-recipe-number"}) {
    EXPECT_TRUE(ends_with(run_program({"train", flag, "99999999999999999999"}), 2,
                          {flag, "99999999999999999999", "64 bits"}));
  }
  EXPECT_TRUE(ends_with(run_program({"train", "--num-layers"}), 2, {"--num-layers needs a value"}));
  EXPECT_TRUE(ends_with(run_program({"train", "--num-layers", "1", "--num-layers", "2"}), 2,
                        {"--num-layers is given 2 times"}));
  EXPECT_TRUE(ends_with(run_program({"recipes", "explain"}), 2, {"recipe is missing"}));
}

// labels: app.program C21
TEST(CommandLine, AFlagWithoutValueSaysSo) {
  EXPECT_TRUE(ends_with(run_program({"train", "--group-query-attention", "8"}), 2,
                        {"--group-query-attention takes no value; use --num-query-groups 8"}));
  EXPECT_TRUE(ends_with(run_program({"train", "--bf16", "3"}), 2, {"--bf16 takes no value"}));
}

}  // namespace
}  // namespace kitchen::testing
