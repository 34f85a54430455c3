#include "app/program.h"
#include "support/temporary_file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace kitchen::testing {
namespace {

/// A text and an empty place for runs, removed at the end.
class TrainCommand : public ::testing::Test {
 protected:
  [[nodiscard]] std::string run_dir(const std::string& name = "run") const {
    return data_.folder() + "/" + name;
  }
  [[nodiscard]] const std::string& data() const { return data_.path(); }
  [[nodiscard]] Words training() const { return tiny_training(data(), run_dir()); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = data_.folder() + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  [[nodiscard]] nlohmann::json config() const {
    std::ifstream in(run_dir() + "/config.json");
    return nlohmann::json::parse(in);
  }
  [[nodiscard]] std::size_t metrics_lines() const {
    std::ifstream in(run_dir() + "/metrics.jsonl");
    std::size_t lines = 0;
    for (std::string line; std::getline(in, line);) ++lines;
    return lines;
  }

 private:
  TemporaryFile data_{"text.txt", sample_text(6000)};
};

// labels: app.train
TEST_F(TrainCommand, RunsAndWritesTheRunFolder) {
  const ChildResult result = run_program(training() + Words{"--kitchen-recipe-number", "2"});
  EXPECT_TRUE(ends_with(result, 0, {}));
  EXPECT_NE(result.out.find(run_dir()), std::string::npos);
  for (const char* name :
       {"metrics.jsonl", "config.json", "samples.txt", "report.html", "checkpoint"}) {
    EXPECT_TRUE(std::filesystem::exists(run_dir() + "/" + name)) << name;
  }
  const ChildResult text =
      run_program({"generate", "--run-dir", run_dir(), "--num-tokens", "4", "--prompt", "ab"});
  EXPECT_TRUE(ends_with(text, 0, {}));
  EXPECT_EQ(text.out.compare(0, 2, "ab"), 0) << text.out;
  EXPECT_TRUE(
      ends_with(run_program({"report", run_dir(), "--output", run_dir("page.html")}), 0, {}));
  EXPECT_TRUE(std::filesystem::exists(run_dir("page.html")));
}

// labels: app.train T17
TEST_F(TrainCommand, DataThatCannotBeReadIsNamed) {
  const auto with_data = [&](const std::string& path) {
    return run_program(tiny_training(path, run_dir()));
  };
  EXPECT_TRUE(ends_with(with_data("/nowhere/text.txt"), 2, {"/nowhere/text.txt", "--data"}));
  EXPECT_TRUE(ends_with(with_data(run_dir("..")), 2, {"--data"}));
  EXPECT_TRUE(ends_with(with_data(write("empty.txt", "")), 2, {"empty.txt", "0 bytes", "--data"}));
  EXPECT_TRUE(ends_with(with_data(write("short.txt", sample_text(100))), 2,
                        {"short.txt", "got 100 tokens", "wanted 65", "batch 4", "sequence 16"}));
  EXPECT_TRUE(ends_with(run_program({"train", "--run-dir", run_dir()}), 2,
                        {"--data is missing", "data/kjv.txt"}));
  EXPECT_TRUE(ends_with(run_program(training() + Words{"--vocab-size", "50"}), 2,
                        {"token id", "--vocab-size"}));
  EXPECT_FALSE(std::filesystem::exists(run_dir() + "/config.json"));
}

// labels: app.train T07
TEST_F(TrainCommand, SizesThatDoNotFitNameFlagsAndTheWayOut) {
  const auto with = [&](const Words& flags) {
    return run_program(Words{"train", "--data", data(), "--run-dir", run_dir()} + flags);
  };
  EXPECT_TRUE(ends_with(with({"--hidden-size", "30"}), 2,
                        {"--hidden-size 30", "--num-attention-heads 4", "--kv-channels"}));
  EXPECT_TRUE(ends_with(with({"--num-layers", "-4"}), 2, {"--num-layers is -4"}));
  EXPECT_TRUE(ends_with(with({"--seq-length", "0"}), 2, {"--seq-length is 0"}));
  EXPECT_TRUE(ends_with(with({"--global-batch-size", "10", "--micro-batch-size", "4"}), 2,
                        {"--global-batch-size 10", "--micro-batch-size 4", "nearest valid"}));
  EXPECT_TRUE(ends_with(with({"--num-query-groups", "2"}), 2, {"--group-query-attention"}));
  EXPECT_TRUE(ends_with(with({"--group-query-attention"}), 2, {"--num-query-groups"}));
  EXPECT_TRUE(ends_with(with({"--lr", "nan"}), 2, {"--lr"}));
  EXPECT_TRUE(ends_with(with({"--lr", "1e-4"}), 2,
                        {"--min-lr 0.0003 is above --lr 0.0001", "--min-lr 1e-05"}));
}

// labels: app.train C16
TEST_F(TrainCommand, RecipesThatAreUnknownOrGivenTwiceAreRefused) {
  const auto with = [&](const Words& flags) { return run_program(training() + flags); };
  EXPECT_TRUE(ends_with(with({"--kitchen-recipe-number", "9999"}), 2,
                        {"--kitchen-recipe-number 9999", "known numbers: 1 (bf16)"}));
  EXPECT_TRUE(ends_with(with({"--kitchen-recipe-number", "-1"}), 2, {"positive integer", "-1"}));
  EXPECT_TRUE(ends_with(with({"--kitchen-recipe-name", "mxfp9"}), 2,
                        {"--kitchen-recipe-name mxfp9", "nearest: mxfp8"}));
  EXPECT_TRUE(
      ends_with(with({"--activation", "geluu"}), 2, {"--activation", "did you mean \"gelu\""}));
  EXPECT_TRUE(ends_with(with({"--kitchen-config-file", "/nowhere.yaml"}), 2, {"/nowhere.yaml"}));
  EXPECT_TRUE(ends_with(with({"--kitchen-recipe-number", "2", "--kitchen-recipe-name", "mxfp8"}), 2,
                        {"--kitchen-recipe-name", "--kitchen-recipe-number", "one recipe"}));
  EXPECT_TRUE(
      ends_with(with({"--kitchen-recipe-number", "2", "--kitchen-attention-backend", "flash"}), 2,
                {"--kitchen-attention-backend", "flash", "sdpa, fa"}));
}

// labels: app.train B09
TEST_F(TrainCommand, DevicesAndPrecisionsThatAreNotThereAreToldPlainly) {
  EXPECT_TRUE(ends_with(run_program(training() + Words{"--backend", "cuda"}), 3,
                        {"--backend cuda", "--backend cpu"}));
  EXPECT_TRUE(ends_with(run_program(training() + Words{"--backend", "tpu"}), 2,
                        {"--backend", "tpu", "cpu or cuda"}));
  EXPECT_TRUE(ends_with(run_program(training() + Words{"--fp16"}), 2,
                        {"--fp16", "loss scaling", "--bf16"}));
  EXPECT_TRUE(
      ends_with(run_program(training() + Words{"--fp32", "--bf16"}), 2, {"--bf16 and --fp32"}));
}

// labels: app.train C19
TEST_F(TrainCommand, TheCommandLineWinsOverTheFileOverTheDefaults) {
  const std::string file =
      write("settings.yaml", "hidden_dropout: 0.1\nseed: 7\nlr: 1e-4\nmin_lr: 1e-5\n");
  ASSERT_TRUE(ends_with(run_program(training() + Words{"--yaml-cfg", file, "--hidden-dropout",
                                                       "0.0", "--exit-interval", "1"}),
                        0, {}));
  const nlohmann::json saved = config();
  EXPECT_EQ(saved.at("model").at("hidden_dropout"), 0.0);
  EXPECT_EQ(saved.at("training").at("seed"), 7);
  EXPECT_EQ(saved.at("training").at("lr"), 1e-4);
  EXPECT_EQ(saved.at("training").at("adam_beta2"), 0.95);
}

// labels: app.train C01 C09
TEST_F(TrainCommand, SlipsInTheSettingsFileAreNamed) {
  const auto with_file = [&](const std::string& text) {
    return run_program(training() + Words{"--yaml-cfg", write("settings.yaml", text)});
  };
  EXPECT_TRUE(
      ends_with(with_file("num_layres: 4\n"), 2, {"num_layres", "did you mean \"num_layers\""}));
  EXPECT_TRUE(ends_with(with_file("num_layers: four\n"), 2, {"num_layers", "four", "an integer"}));
  EXPECT_TRUE(ends_with(with_file("num_layers: [1]\n"), 2, {"num_layers"}));
  EXPECT_TRUE(ends_with(run_program(training() + Words{"--yaml-cfg", "/nowhere.yaml"}), 2,
                        {"/nowhere.yaml"}));
}

// labels: app.train
TEST_F(TrainCommand, ResumesWhereItStoppedAndOnlyTheSameRun) {
  ASSERT_TRUE(ends_with(run_program(training() + Words{"--exit-interval", "2"}), 0, {}));
  EXPECT_EQ(metrics_lines(), 2u);
  EXPECT_TRUE(ends_with(run_program(training()), 2,
                        {run_dir(), "holds another run", "--resume", "--run-dir"}));
  const auto resume = [&](const Words& flags) {
    return run_program(Words{"train", "--run-dir", run_dir(), "--resume"} + flags);
  };
  EXPECT_TRUE(ends_with(resume({"--train-iters", "8"}), 2,
                        {"--train-iters: 4 in the run, 8 asked for", "--run-dir"}));
  EXPECT_TRUE(ends_with(resume({"--hidden-size", "64"}), 2,
                        {"--hidden-size: 32 in the run, 64 asked for"}));
  EXPECT_TRUE(ends_with(resume({"--data", write("other.txt", sample_text(5000))}), 2,
                        {"other.txt", "--data"}));
  EXPECT_TRUE(ends_with(resume({"--kitchen-recipe-number", "2"}), 2,
                        {"--kitchen-recipe-number: null in the run, 2"}));
  EXPECT_TRUE(ends_with(resume({}), 0, {}));
  EXPECT_EQ(metrics_lines(), 4u);
  EXPECT_TRUE(ends_with(run_program({"train", "--resume", "--data", data()}), 2,
                        {"--resume needs --run-dir"}));
  EXPECT_TRUE(ends_with(run_program({"train", "--resume", "--run-dir", run_dir("none")}), 2,
                        {"holds no run to resume"}));
}

// labels: app.train R03
TEST_F(TrainCommand, SignalsSaveAndEndWithTheirStatus) {
  Words endless = training() + Words{"--eval-interval", "0"};
  for (std::size_t i = 0; i < endless.size(); ++i) {
    if (endless[i] == "--train-iters") endless[i + 1] = "1000000";
  }
  ChildProcess terminated(program(endless));
  ASSERT_TRUE(terminated.wait_for_output("step       3/", 30.0));
  terminated.send_signal(SIGTERM);
  EXPECT_TRUE(ends_with(terminated.finish(), 0, {}));
  EXPECT_TRUE(std::filesystem::exists(run_dir() + "/checkpoint"));

  ChildProcess interrupted(program({"train", "--run-dir", run_dir(), "--resume"}));
  ASSERT_TRUE(interrupted.wait_for_output("resumed", 30.0));
  interrupted.send_signal(SIGINT);
  EXPECT_TRUE(ends_with(interrupted.finish(), 130, {}));
}

// labels: app.train
TEST_F(TrainCommand, AFullDiskEndsWithOneAndKeepsTheOldCheckpoint) {
  ASSERT_TRUE(ends_with(run_program(training() + Words{"--exit-interval", "2"}), 0, {}));
  const Words resume{"train", "--run-dir", run_dir(), "--resume"};
  ChildOptions full;
  full.max_file_bytes = 64 * 1024;
  EXPECT_TRUE(ends_with(run_program(resume, full), 1, {run_dir() + "/checkpoint"}));
  const ChildResult again = run_program(resume);
  EXPECT_TRUE(ends_with(again, 0, {}));
  EXPECT_NE(again.out.find("resumed    at step 2"), std::string::npos) << again.out;
}

// labels: app.train
TEST_F(TrainCommand, ADamagedSettingsFileIsNamedOnResume) {
  ASSERT_TRUE(ends_with(run_program(training() + Words{"--exit-interval", "2"}), 0, {}));
  const std::string path = run_dir() + "/config.json";
  const std::string good = config().dump();
  const auto resume_with = [&](const std::string& text) {
    std::ofstream(path) << text;
    return run_program({"train", "--run-dir", run_dir(), "--resume"});
  };
  EXPECT_TRUE(
      ends_with(resume_with(good.substr(0, 100)), 2, {path, "no JSON object", "index.json"}));
  EXPECT_TRUE(ends_with(resume_with(R"({"model": {"num_layres": 1}})"), 2,
                        {path, "num_layres", "did you mean \"num_layers\""}));
  std::filesystem::remove(path);
  const Words resume{"train", "--run-dir", run_dir(), "--resume"};
  EXPECT_TRUE(ends_with(run_program(resume), 2, {path + ": missing", "--data is missing"}));
  EXPECT_TRUE(ends_with(resume_with(good), 0, {}));
}

// labels: app.train K01
TEST_F(TrainCommand, ACutCheckpointEndsWithItsFileSizesAndTheWayOut) {
  ASSERT_TRUE(ends_with(run_program(training() + Words{"--exit-interval", "2"}), 0, {}));
  const std::string folder = run_dir() + "/checkpoint/iter_0000002/";
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "index.json"}) {
    const auto whole = std::filesystem::file_size(folder + name);
    std::filesystem::copy_file(folder + name, run_dir("copy"));
    for (const std::uintmax_t bytes : {std::uintmax_t{0}, std::uintmax_t{7}, whole - 1}) {
      std::filesystem::resize_file(folder + name, bytes);
      EXPECT_TRUE(ends_with(run_program({"train", "--run-dir", run_dir(), "--resume"}), 1,
                            {folder + name, "no checkpoint can be loaded", "another --run-dir"}));
    }
    std::filesystem::remove(folder + name);
    std::filesystem::rename(run_dir("copy"), folder + name);
  }
  EXPECT_TRUE(ends_with(run_program({"train", "--run-dir", run_dir(), "--resume"}), 0, {}));
}

// labels: app.train K07 T03
TEST_F(TrainCommand, AFailureBeforeTheFirstCheckpointTellsThatThereIsNone) {
  const ChildResult result = run_program(training() + Words{"--lr", "1e300"});
  EXPECT_TRUE(ends_with(result, 1, {"weights are not finite", "no earlier one", "--run-dir"}));
}

// labels: app.train K07
TEST_F(TrainCommand, AFolderThatTurnsUnwritableDuringTheWorkIsAFailureNotBadInput) {
  Words endless = training() + Words{"--save-interval", "100", "--eval-interval", "0"};
  for (std::size_t i = 0; i < endless.size(); ++i) {
    if (endless[i] == "--train-iters") endless[i + 1] = "1000000";
  }
  ChildProcess child(program(endless));
  ASSERT_TRUE(child.wait_for_output("step       3/", 30.0));
  std::filesystem::remove_all(run_dir() + "/checkpoint");
  std::ofstream(run_dir() + "/checkpoint") << "a file where the folder was";
  child.send_signal(SIGTERM);
  EXPECT_TRUE(ends_with(child.finish(), 1, {run_dir() + "/checkpoint"}));
}

// labels: app.train
TEST_F(TrainCommand, ARunFolderThatCannotBeMadeIsNamed) {
  const std::string below_a_file = data() + "/run";
  EXPECT_TRUE(ends_with(run_program(tiny_training(data(), below_a_file)), 2, {below_a_file}));
  EXPECT_TRUE(
      ends_with(run_program({"generate", "--run-dir", run_dir("none")}), 2, {run_dir("none")}));
}

}  // namespace
}  // namespace kitchen::testing
