#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/train/metrics_writer.h"
#include "kitchen/train/progress.h"
#include "kitchen/train/run_folder.h"
#include "kitchen/train/signals.h"
#include "train_io/temp_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <random>
#include <sstream>
#include <thread>

namespace kitchen::train {
namespace {

using kitchen::testing::mentions;
using kitchen::testing::message_of;
using kitchen::testing::slurp;
using kitchen::testing::spit;
using kitchen::testing::TempFolder;

MetricsLine line_of(std::int64_t step) {
  return {step, {{"loss", 0.1 * static_cast<double>(step)}}, {{"seconds", 0.5}}};
}

// labels: train.MetricsWriter T01 T06
TEST(MetricsWriter, LineHasValuesInOrderAndTimesLast) {
  const MetricsLine line{7,
                         {{"loss", 5.545177444479562},
                          {"tokens", std::int64_t{0}},
                          {"grad_norm", std::nan("")},
                          {"peak", -INFINITY},
                          {"op", std::string("a \"b\"\n")}},
                         {{"tokens_per_s", 1e21}, {"seconds", 0.25}}};
  EXPECT_EQ(to_json_line(line),
            R"({"step":7,"loss":5.545177444479562,"tokens":0,"grad_norm":"nan","peak":"-inf",)"
            R"("op":"a \"b\"\n","tokens_per_s":1e+21,"seconds":0.25})");
}

// labels: train.MetricsWriter T19
TEST(MetricsWriter, NumbersComeBackBitForBit) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t bits = random();
    double value = 0.0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const auto json = nlohmann::json::parse(to_json_line({1, {{"x", value}}, {}}));
    const double back = json["x"].get<double>();
    ASSERT_EQ(std::memcmp(&back, &value, sizeof value), 0) << value;
  }
}

// labels: train.MetricsWriter
TEST(MetricsWriter, EveryLineIsInTheFileAtOnce) {
  const TempFolder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsWriter writer(path);
  writer.write(line_of(1));
  EXPECT_EQ(slurp(path), to_json_line(line_of(1)) + "\n");
  writer.write(line_of(2));
  EXPECT_EQ(slurp(path), to_json_line(line_of(1)) + "\n" + to_json_line(line_of(2)) + "\n");
}

// labels: train.MetricsWriter K09
TEST(MetricsWriter, ResumeDropsLaterLinesAndACutOne) {
  const TempFolder folder;
  const std::string path = folder / "metrics.jsonl";
  std::string straight;
  {
    MetricsWriter writer(path);
    for (std::int64_t step = 1; step <= 5; ++step) {
      writer.write(line_of(step));
      if (step <= 3) straight += to_json_line(line_of(step)) + "\n";
    }
  }
  spit(path, slurp(path) + "{\"step\":6,\"lo");
  const LogCapture log;
  MetricsWriter writer(path, 3);
  EXPECT_EQ(slurp(path), straight);
  EXPECT_EQ(log.count(LogLevel::warning, ":6: the last line was cut"), 1) << log.text();
  writer.write(line_of(4));
  EXPECT_EQ(slurp(path), straight + to_json_line(line_of(4)) + "\n");
}

// labels: train.MetricsWriter
TEST(MetricsWriter, ForeignOrDamagedFilesAreRefused) {
  const TempFolder folder;
  const std::string path = folder / "metrics.jsonl";
  spit(path, "{\"step\":1}\nnot json\n{\"step\":2}\n");
  EXPECT_TRUE(mentions(message_of<ValueError>([&] { MetricsWriter writer(path); }), "--resume"));
  EXPECT_TRUE(mentions(message_of<RuntimeError>([&] { MetricsWriter writer(path, 9); }),
                       path + ":2: found 'not json'"));
  EXPECT_EQ(slurp(path), "{\"step\":1}\nnot json\n{\"step\":2}\n");
  EXPECT_THROW(MetricsWriter(folder / "no/such/folder"), IOError);
}

// labels: train.MetricsWriter
TEST(ConfigJson, IsIndentedAndMustBeJson) {
  const TempFolder folder;
  write_config_json(folder / "config.json", R"({"b":1,"a":[2]})");
  EXPECT_EQ(slurp(folder / "config.json"), "{\n  \"b\": 1,\n  \"a\": [\n    2\n  ]\n}\n");
  EXPECT_THROW(write_config_json(folder / "config.json", "{"), ValueError);
}

// labels: train.RunFolder
TEST(RunFolder, AnotherRunIsNeverOverwritten) {
  const TempFolder folder;
  const std::string path = folder / "runs/first";
  const RunFolder run = RunFolder::open(path, false);
  EXPECT_EQ(run.checkpoint_path(), path + "/checkpoint");
  spit(path + "/notes.txt", "mine");
  (void)RunFolder::open(path, false);
  spit(run.metrics_path(), "x");
  spit(run.config_path(), "y");
  const std::string message = message_of<ValueError>([&] { (void)RunFolder::open(path, false); });
  EXPECT_TRUE(mentions(message, "metrics.jsonl, config.json"));
  EXPECT_TRUE(mentions(message, "--resume"));
  EXPECT_TRUE(mentions(message, "another --run-dir"));
  (void)RunFolder::open(path, true);
  EXPECT_EQ(slurp(run.metrics_path()) + slurp(path + "/notes.txt"), "xmine");
}

// labels: train.RunFolder K08
TEST(RunFolder, ResumeOfNothingAndUnusablePathsAreRefused) {
  const TempFolder folder;
  EXPECT_TRUE(mentions(message_of<ValueError>([&] { (void)RunFolder::open(folder / "x", true); }),
                       "holds no run to resume"));
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
  spit(folder / "file", "");
  EXPECT_THROW((void)RunFolder::open(folder / "file", false), IOError);
  EXPECT_THROW((void)RunFolder::open(folder / "file/run", false), IOError);
  EXPECT_THROW((void)RunFolder::open("", false), ValueError);
}

ProgressState state_at(std::int64_t step) {
  return {step, 2.5, 3e-3, 12'345.0, 10.0 * static_cast<double>(step)};
}

std::string terminal_line(int width) {
  std::ostringstream out;
  Progress progress(out, {200, 0, true, width});
  progress.update(state_at(50));
  return out.str();
}

// labels: train.Progress
TEST(Progress, TerminalLineShedsPartsUntilItFits) {
  const std::string start = "\r\x1b[K";
  EXPECT_EQ(terminal_line(120), start +
                                    "step  50/200 [#####---------------]  loss 2.5000  lr 3.00e-03 "
                                    " 12.3k tok/s  ETA 25:00");
  EXPECT_EQ(terminal_line(80),
            start + "step  50/200  loss 2.5000  lr 3.00e-03  12.3k tok/s  ETA 25:00");
  EXPECT_EQ(terminal_line(50), start + "step  50/200  loss 2.5000  ETA 25:00");
  EXPECT_EQ(terminal_line(11), start + "step  50/2");
  for (int width = 1; width < 130; ++width) {
    EXPECT_LE(terminal_line(width).size() - start.size(),
              static_cast<std::size_t>(std::max(width - 1, 1)));
  }
}

// labels: train.Progress
TEST(Progress, ElsewhereLinesArePlainAndRare) {
  std::ostringstream out;
  Progress progress(out, {25, 0, false, 80, 10});
  for (std::int64_t step = 1; step <= 25; ++step) progress.update(state_at(step));
  progress.message("saved");
  progress.finish();
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5) << text;  // 1, 10, 20, 25, message
  EXPECT_EQ(text.find_first_of("\r\x1b"), std::string::npos);
  EXPECT_TRUE(mentions(text, "step 10/25  loss 2.5000  lr 3.00e-03  12.3k tok/s  ETA 2:30\n"));
}

// labels: train.Progress
TEST(Progress, MessageStandsAboveTheLine) {
  std::ostringstream out;
  Progress progress(out, {200, 40, true, 50});
  progress.update(state_at(50));
  progress.message("saved");
  progress.finish();
  const std::string line = "\r\x1b[Kstep  50/200  loss 2.5000  ETA 2:05:00";
  EXPECT_EQ(out.str(), line + "\r\x1b[Ksaved\n" + line + "\n");
}

// labels: train.Progress
TEST(Progress, DurationsAreReadable) {
  EXPECT_EQ(format_duration(7.4), "0:07");
  EXPECT_EQ(format_duration(59.6), "1:00");
  EXPECT_EQ(format_duration(11'045), "3:04:05");
  EXPECT_EQ(format_duration(2 * 86400 + 11'045), "2d 03:04");
  EXPECT_EQ(format_duration(-1), "--:--");
  EXPECT_EQ(format_duration(std::nan("")), "--:--");
  EXPECT_EQ(format_duration(INFINITY), "--:--");
}

// labels: train.SignalScope
TEST(Signals, HandlersOnlySetAFlag) {
  const SignalScope scope;
  EXPECT_EQ(stop_request(), StopRequest::none);
  ::raise(SIGINT);
  EXPECT_EQ(stop_request(), StopRequest::interrupt);
  ::raise(SIGTERM);
  EXPECT_EQ(stop_request(), StopRequest::terminate);
  ::raise(SIGXFSZ);
}

// labels: train.SignalScope
TEST(Signals, ScopeGivesTheFormerHandlersBackAndStartsClear) {
  const auto former = std::signal(SIGTERM, SIG_IGN);
  {
    const SignalScope scope;
    ::raise(SIGTERM);
  }
  ::raise(SIGTERM);
  EXPECT_EQ(std::signal(SIGTERM, former), SIG_IGN);
  const SignalScope scope;
  EXPECT_EQ(stop_request(), StopRequest::none);
}

// labels: train.SignalScope
TEST(SignalsDeathTest, SecondInterruptExitsAtOnce) {
  const auto interrupt_twice = [] {
    const SignalScope scope;
    ::raise(SIGINT);
    ::raise(SIGINT);
  };
  EXPECT_EXIT(interrupt_twice(), ::testing::ExitedWithCode(130), "");
}

// labels: train.TerminationWatchdog
TEST(SignalsDeathTest, TerminateWithoutABoundaryNamesTheOpAndExits) {
  const auto hang = [] {
    const SignalScope scope;
    const TerminationWatchdog watchdog([] { return "rank 3 in all_reduce"; },
                                       std::chrono::milliseconds(50));
    ::raise(SIGTERM);
    std::this_thread::sleep_for(std::chrono::seconds(60));
  };
  EXPECT_EXIT(hang(), ::testing::ExitedWithCode(143), "rank 3 in all_reduce");
}

// labels: train.TerminationWatchdog
TEST(Signals, DisarmedWatchdogLetsTheSaveTakeItsTime) {
  const SignalScope scope;
  TerminationWatchdog watchdog([] { return ""; }, std::chrono::milliseconds(100));
  ::raise(SIGTERM);
  watchdog.disarm();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(stop_request(), StopRequest::terminate);
}

}  // namespace
}  // namespace kitchen::train
