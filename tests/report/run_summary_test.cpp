#include "kitchen/report/run_summary.h"

#include "kitchen/base/error.h"
#include "kitchen/report/html_report.h"
#include "report/fake_run.h"

#include <gtest/gtest.h>

namespace kitchen::report {
namespace {

using testing::TemporaryFolder;
using testing::write_file;

/// Message of the E that reading `folder` throws; empty if it throws none.
template <typename E>
std::string error_of(const std::filesystem::path& folder) {
  try {
    (void)read_run(folder.string());
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

void write_run(const std::filesystem::path& folder, const std::string& metrics) {
  write_file(folder / "metrics.jsonl", metrics);
  write_file(
      folder / "config.json",
      R"({"kitchen-config-file": "recipes/moe.yaml", "model": {"layers": [1, 2], "tied": true}})");
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// labels: report.read_run
TEST(ReadRun, ReadsEveryFileOfAFolder) {
  const TemporaryFolder folder;
  testing::write_fake_run({"fp8", 0.01, 9000.0, 100, 2, true, 3}, folder.path() / "run");
  const RunSummary run = read_run((folder.path() / "run/").string());
  EXPECT_EQ(run.name, "run");
  EXPECT_EQ(run.metrics.size(), 101u);
  EXPECT_TRUE(run.metrics[100].val_loss.has_value());
  EXPECT_FALSE(run.metrics[99].val_loss.has_value());
  EXPECT_EQ(run.final_validation()->step, 100);
  EXPECT_EQ(run.quantization.size(), 2u * 4u * 6u);
  EXPECT_EQ(run.quantization[0].module, "decoder.layers.0.self_attention.linear_qkv");
  EXPECT_FALSE(run.quantization[5].sqnr_db.has_value());
  EXPECT_EQ(run.op_times.size(), 8u);
  EXPECT_EQ(run.recipe(), "fp8");
  EXPECT_EQ(run.files.size(), 5u);
  EXPECT_TRUE(run.notes.empty());
}

// labels: report.read_run
TEST(ReadRun, NullIsNotFiniteAndAbsentIsNotMeasured) {
  const TemporaryFolder folder;
  write_run(folder.path(),
            "{\"step\": 1, \"train_loss\": null}\r\n\n{\"step\": 2, \"train_loss\": 1.5}\n");
  const RunSummary run = read_run(folder.path().string());
  ASSERT_EQ(run.metrics.size(), 2u);
  EXPECT_TRUE(std::isnan(run.metrics[0].train_loss.value()));
  EXPECT_FALSE(run.metrics[0].val_loss.has_value());
  EXPECT_EQ(run.metrics[1].train_loss.value(), 1.5);
  EXPECT_EQ(run.recipe(), "recipes/moe.yaml");
  EXPECT_EQ(run.settings[1], (std::pair<std::string, std::string>("model.layers", "[1,2]")));
  EXPECT_EQ(run.settings[2].second, "true");
  EXPECT_EQ(run.final_validation(), nullptr);
}

// labels: report.read_run train.MetricsWriter T01
TEST(ReadRun, StringsThatSayNotFiniteAreReadAsNull) {
  const TemporaryFolder folder;
  write_run(folder.path(), "{\"step\":1,\"train_loss\":\"nan\",\"grad_norm\":\"inf\"}\n"
                           "{\"step\":2,\"train_loss\":2.5,\"grad_norm\":\"-inf\"}\n");
  const RunSummary run = read_run(folder.path().string());
  ASSERT_EQ(run.metrics.size(), 2u);
  EXPECT_TRUE(std::isnan(run.metrics[0].train_loss.value()));
  EXPECT_TRUE(std::isnan(run.metrics[0].grad_norm.value()));
  EXPECT_TRUE(std::isnan(run.metrics[1].grad_norm.value()));
  EXPECT_EQ(run.metrics[1].train_loss.value(), 2.5);
  write_report({run}, (folder.path() / "report.html").string());
  EXPECT_TRUE(std::filesystem::file_size(folder.path() / "report.html") > 0);
}

// labels: report.read_run
TEST(ReadRun, RecipeGivenByNameIsTold) {
  const TemporaryFolder folder;
  write_run(folder.path(), "{\"step\":1}\n");
  write_file(folder.path() / "config.json",
             R"({"precision":{"kitchen_recipe_number":null,"kitchen_recipe_name":"mxfp8"}})");
  EXPECT_EQ(read_run(folder.path().string()).recipe(), "mxfp8");
}

// labels: report.read_run
TEST(ReadRun, TornLastLineIsLeftOutWithANote) {
  const TemporaryFolder folder;
  for (const std::string& torn : std::vector<std::string>{"{\"step\": 2, \"train_l", "{\"step\""}) {
    write_run(folder.path(), "{\"step\": 1}\n" + torn);
    const RunSummary run = read_run(folder.path().string());
    EXPECT_EQ(run.metrics.size(), 1u);
    ASSERT_EQ(run.notes.size(), 1u);
    EXPECT_TRUE(contains(run.notes[0], "torn line (2)")) << run.notes[0];
  }
  write_run(folder.path(), "{\"step\": 1}\n" + std::string(7, '\0'));
  EXPECT_EQ(read_run(folder.path().string()).notes.size(), 1u);
  write_run(folder.path(), "{\"step\": 1}\n{\"step\": 2}");  // whole, only without line end
  EXPECT_EQ(read_run(folder.path().string()).metrics.size(), 2u);
}

// labels: report.read_run
TEST(ReadRun, ResumedStepsCountAsLastLogged) {
  const TemporaryFolder folder;
  write_run(folder.path(),
            "{\"step\": 1, \"train_loss\": 5}\n{\"step\": 2, \"train_loss\": 4}\n"
            "{\"step\": 3, \"train_loss\": 9}\n{\"step\": 2, \"train_loss\": 3}\n");
  const RunSummary run = read_run(folder.path().string());
  ASSERT_EQ(run.metrics.size(), 3u);
  EXPECT_EQ(run.metrics[1].train_loss.value(), 3.0);
  EXPECT_EQ(run.metrics[2].train_loss.value(), 9.0);
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_TRUE(contains(run.notes[0], "1 step was logged more than once")) << run.notes[0];
}

// labels: report.read_run
TEST(ReadRun, MissingFoldersAndFilesAreNamed) {
  const TemporaryFolder folder;
  EXPECT_TRUE(contains(error_of<IOError>(folder.path() / "absent"), "absent: no such run folder"));
  EXPECT_TRUE(contains(error_of<IOError>(folder.path()), "metrics.jsonl: not found"));
  write_file(folder.path() / "metrics.jsonl", "");
  EXPECT_TRUE(contains(error_of<IOError>(folder.path()), "config.json: not found"));
  EXPECT_TRUE(contains(error_of<IOError>(folder.path() / "metrics.jsonl"), "no such run folder"));
  std::filesystem::create_directories(folder.path() / "config.json");
  EXPECT_TRUE(contains(error_of<IOError>(folder.path()), "config.json: cannot be read"));
}

// labels: report.read_run
TEST(ReadRun, MalformedContentNamesFileLineAndKey) {
  const TemporaryFolder folder;
  const std::filesystem::path& path = folder.path();
  const auto metrics_error = [&](const std::string& text) {
    write_run(path, text);
    return error_of<ValueError>(path);
  };
  EXPECT_TRUE(contains(metrics_error("{\"step\": 1}\n{\"step\": \n{\"step\": 3}\n"),
                       "metrics.jsonl:2: malformed JSON"));
  EXPECT_TRUE(contains(metrics_error("{\"step\": 1}\n{\"st\n"), "metrics.jsonl:2: malformed JSON"));
  EXPECT_TRUE(
      contains(metrics_error("\n{\"loss\": 1}\n"), "metrics.jsonl:2: key \"step\" is missing"));
  EXPECT_TRUE(
      contains(metrics_error("{\"step\": -1}\n"), "\"step\" is -1, expected a whole number >= 0"));
  EXPECT_TRUE(contains(metrics_error("{\"step\": 1, \"lr\": \"3e-3\"}\n"),
                       "metrics.jsonl:1: \"lr\" is \"3e-3\", expected a number, null, \"nan\""));
  EXPECT_TRUE(
      contains(metrics_error("[1]\n"), "metrics.jsonl:1: found array, expected a JSON object"));
  EXPECT_TRUE(
      contains(metrics_error("{\"step\": 1, \"lr\": 1e999}\n"), "metrics.jsonl:1: malformed JSON"));
  write_run(path, "");
  const auto file_error = [&](const char* name, const std::string& text) {
    write_file(path / name, text);
    const std::string message = error_of<ValueError>(path);
    std::filesystem::remove(path / name);
    return message;
  };
  EXPECT_TRUE(contains(file_error("quantization.json", "{}"),
                       "quantization.json: found object, expected a JSON list"));
  EXPECT_TRUE(contains(file_error("quantization.json", "[{\"module\": 3}]"),
                       "quantization.json: entry 0: \"module\" is 3"));
  EXPECT_TRUE(contains(file_error("op_times.json", "{\"gemm\": {\"calls\": 1}}"),
                       "op_times.json: \"gemm\": key \"seconds\" is missing"));
  EXPECT_TRUE(contains(file_error("op_times.json", "[]"), "op_times.json: found array"));
  EXPECT_TRUE(contains(file_error("config.json", "3"), "config.json: found number"));
}

}  // namespace
}  // namespace kitchen::report
