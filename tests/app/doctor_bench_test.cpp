#include "app/program.h"
#include "kitchen/analysis/timing.h"
#include "kitchen/base/error.h"
#include "support/expect_error.h"
#include "support/temporary_file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace kitchen::testing {
namespace {

nlohmann::json read_json(const std::string& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

// labels: app.doctor B09
TEST(Doctor, TellsWhatIsThereAndWhatIsNotInThisBuild) {
  const ChildResult result = run_program({"doctor", "--data", "/nowhere.txt"});
  EXPECT_EQ(result.status, 0);
  for (const char* topic :
       {"processor", "instructions", "threads", "BLAS", "memory", "disk", "run folder"}) {
    EXPECT_NE(result.out.find(topic), std::string::npos) << topic;
  }
  EXPECT_NE(result.out.find("/nowhere.txt is not there"), std::string::npos);
  EXPECT_NE(result.out.find("tools/quickstart"), std::string::npos);
  EXPECT_NE(result.out.find("not in this build"), std::string::npos);
}

// labels: app.doctor B09
TEST(Doctor, PrintsJsonAndRefusesADeviceThatIsNotThere) {
  const ChildResult result = run_program({"doctor", "--json", "--backend", "cuda"});
  EXPECT_TRUE(ends_with(result, 3, {"--backend cuda", "--backend cpu"}));
  const nlohmann::json report = nlohmann::json::parse(result.out);
  EXPECT_GE(report.at("findings").size(), 10u);
  EXPECT_TRUE(report.at("problems").is_number_integer());
}

// labels: app.doctor
TEST(Doctor, AFolderThatCannotBeWrittenIsAProblem) {
  const ChildResult result = run_program({"doctor", "--json", "--run-dir", "/proc/none"});
  EXPECT_EQ(result.status, 0);
  EXPECT_GE(nlohmann::json::parse(result.out).at("problems").get<int>(), 1);
}

// labels: app.bench F01
TEST(Bench, TrainingReportsRatesAndSharesAndAPeer) {
  const TemporaryFile json("bench.json", "");
  const std::string peer =
      "i=0; while [ $i -lt 9 ]; do echo \"step $i (took 2000.0 ms)\"; i=$((i+1)); done";
  const ChildResult result =
      run_program(Words{"bench", "train-cpu", "--vocab-size", "64", "--micro-batch-size", "2",
                        "--global-batch-size", "2", "--warm-up-steps", "1", "--steps", "3",
                        "--rounds", "2", "--json", json.path(), "--peer", peer} +
                  tiny_model());
  ASSERT_TRUE(ends_with(result, 0, {}));
  EXPECT_NE(result.out.find("times the peer's tokens/s"), std::string::npos);
  const nlohmann::json report = read_json(json.path());
  EXPECT_EQ(report.at("tokens_per_step"), 32);
  EXPECT_EQ(report.at("step_seconds").size(), 6u);
  EXPECT_EQ(report.at("peer_step_seconds").size(), 6u);
  EXPECT_EQ(report.at("peer_step_seconds")[0], 2.0);
  EXPECT_GT(report.at("ops").at("gemm").at("calls").get<int>(), 0);
  // By hand: weights of products 12·32² + 64·32, tokens 32; attention 4·16·32 a token.
  EXPECT_EQ(report.at("flops_per_step").get<double>(),
            3.0 * 32 * (2.0 * (12 * 32 * 32 + 64 * 32) + 4 * 16 * 32));
}

// labels: app.bench F01
TEST(Bench, APeerThatFailsIsQuoted) {
  const Words common =
      Words{"bench",   "train-cpu", "--vocab-size",       "64", "--warm-up-steps",     "0",
            "--steps", "1",         "--micro-batch-size", "2",  "--global-batch-size", "2"} +
      tiny_model();
  EXPECT_TRUE(ends_with(run_program(common + Words{"--peer", "echo no such file; exit 3"}), 1,
                        {"ended after 0 of 1 lines", "no such file"}));
  EXPECT_TRUE(ends_with(run_program(common + Words{"--peer", "true", "--peer-pattern", "took"}), 2,
                        {"--peer-pattern", "no group"}));
  EXPECT_TRUE(ends_with(run_program(common + Words{"--peer", "true", "--peer-pattern", "("}), 2,
                        {"--peer-pattern", "no regular expression"}));
  EXPECT_TRUE(ends_with(run_program(common + Words{"--rounds", "0"}), 2, {"--rounds 0"}));
}

// labels: app.bench F01
TEST(Bench, KernelsReportMedianSpreadAndRate) {
  const TemporaryFile json("bench.json", "");
  ASSERT_TRUE(ends_with(
      run_program({"bench", "codec", "--rows", "64", "--cols", "96", "--json", json.path()}), 0,
      {}));
  const nlohmann::json codec = read_json(json.path());
  EXPECT_GE(codec.size(), 5u);
  for (const nlohmann::json& row : codec) {
    EXPECT_GE(row.at("repeats").get<int>(), 5);
    EXPECT_GT(row.at("rate").get<double>(), 0.0);
  }
  ASSERT_TRUE(ends_with(
      run_program({"bench", "gemm", "--shape", "17x33x65", "--json", json.path()}), 0, {}));
  EXPECT_EQ(read_json(json.path())[0].at("shape"), "17x33x65");
  EXPECT_TRUE(ends_with(run_program({"bench", "gemm", "--shape", "17x33"}), 2,
                        {"--shape is '17x33'", "MxNxK"}));
  EXPECT_TRUE(ends_with(run_program({"bench", "codec", "--rows", "0"}), 2, {"--rows 0"}));
  EXPECT_TRUE(ends_with(run_program({"bench", "codec", "--repeats", "0"}), 2, {"0 repeats"}));
}

// labels: app.bench F01
TEST(Bench, QuantizeTakesTurnsWithACopy) {
  const TemporaryFile json("bench.json", "");
  const ChildResult result =
      run_program({"bench", "quantize", "--rows", "256", "--cols", "384", "--repeats", "3",
                   "--num-threads", "2", "--json", json.path()});
  ASSERT_TRUE(ends_with(result, 0, {}));
  EXPECT_NE(result.out.find("of copy"), std::string::npos);
  const nlohmann::json rows = read_json(json.path());
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0].at("name"), "copy");
  EXPECT_EQ(rows[0].at("share_of_copy"), 1.0);
  // By hand: elements · (2 + 2 + 1) and one scale; elements · (2 + 1 + 1) and scales of 1x128.
  EXPECT_EQ(rows[1].at("bytes").get<double>(), 5.0 * 256 * 384 + 4);
  EXPECT_EQ(rows[2].at("bytes").get<double>(), 4.0 * 256 * 384 + 4.0 * (256 * 3 + 384 * 2));
  for (const nlohmann::json& row : rows) {
    EXPECT_EQ(row.at("repeats"), 3);
    EXPECT_GT(row.at("share_of_copy").get<double>(), 0.0);
    EXPECT_GT(row.at("fastest_share_of_copy").get<double>(), 0.0);
  }
  EXPECT_TRUE(ends_with(run_program({"bench", "quantize", "--cols", "0"}), 2, {"--cols 0"}));
}

// labels: app.bench F01
TEST(Timing, WorksTakeTurns) {
  std::string order;
  const auto timings =
      analysis::measure_in_turns({[&] { order += 'a'; }, [&] { order += 'b'; }}, {1, 2});
  EXPECT_EQ(order, "ababab");
  ASSERT_EQ(timings.size(), 2u);
  EXPECT_EQ(timings[1].seconds.size(), 2u);
}

// labels: app.bench F01
TEST(Timing, MedianAndSpreadOfKnownTimes) {
  const analysis::Timing odd{{3.0, 1.0, 2.0}};
  EXPECT_EQ(odd.median(), 2.0);
  EXPECT_EQ(odd.fastest(), 1.0);
  EXPECT_EQ(odd.slowest(), 3.0);
  EXPECT_EQ(odd.spread(), 1.0);
  EXPECT_EQ((analysis::Timing{{4.0, 1.0, 3.0, 2.0}}.median()), 2.5);
  EXPECT_EQ(analysis::Timing{}.spread(), 0.0);
  int calls = 0;
  EXPECT_EQ(analysis::measure([&] { ++calls; }, {2, 5}).seconds.size(), 5u);
  EXPECT_EQ(calls, 7);
  EXPECT_TRUE(throws<ValueError>([] { (void)analysis::measure([] {}, {0, 0}); }, {"0 repeats"}));
}

}  // namespace
}  // namespace kitchen::testing
