#pragma once

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

namespace kitchen::testing {

/// A temporary folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "kitchen_report_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// What a run of a small GPT might leave: loss from ln 256 to about 1.9, a quantized one slightly
/// above.
struct FakeRun {
  std::string recipe = "bf16";
  double loss_gap = 0.0;
  double speed = 11800.0;
  int steps = 400;
  int layers = 4;
  bool is_quantized = false;
  unsigned seed = 1;
};

inline void write_metrics(const FakeRun& run, const std::filesystem::path& folder) {
  std::mt19937 generator(run.seed);
  std::normal_distribution<double> noise;
  std::string text;
  for (int step = 0; step <= run.steps; ++step) {
    const double progress = static_cast<double>(step) / run.steps;
    const double loss = 1.78 + 3.765 * std::exp(-step / 45.0) * (1.0 - 0.25 * progress) +
                        0.35 * (1.0 - progress) * std::min(1.0, step / 45.0) +
                        run.loss_gap * std::min(1.0, step / 100.0);
    nlohmann::json line = {{"step", step}, {"tokens", step * 4096}};
    line["train_loss"] = loss + 0.06 * noise(generator);
    if (step % 20 == 0) line["val_loss"] = loss + 0.04 + 0.003 * noise(generator);
    line["lr"] =
        step < 20 ? 3e-3 * step / 20 : 3e-4 + 1.35e-3 * (1.0 + std::cos(3.14159265 * progress));
    line["grad_norm"] = (0.35 + 4.0 * std::exp(-step / 30.0)) * std::exp(0.25 * noise(generator));
    line["tokens_per_s"] = run.speed * (1.0 + 0.03 * noise(generator));
    text += line.dump() + '\n';
  }
  write_file(folder / "metrics.jsonl", text);
}

inline void write_quantization(const FakeRun& run, const std::filesystem::path& folder) {
  std::mt19937 generator(run.seed + 7);
  std::normal_distribution<double> noise;
  nlohmann::json list = nlohmann::json::array();
  constexpr const char* kModules[] = {"self_attention.linear_qkv", "self_attention.linear_proj",
                                      "mlp.linear_fc1", "mlp.linear_fc2"};
  constexpr const char* kUses[][2] = {{"x", "fprop"}, {"w", "fprop"}, {"g", "dgrad"},
                                      {"w", "dgrad"}, {"x", "wgrad"}, {"g", "wgrad"}};
  for (int layer = 0; layer < run.layers; ++layer) {
    for (int m = 0; m < 4; ++m) {
      for (const auto& use : kUses) {
        const bool is_weight = use[0][0] == 'w';
        const bool is_gradient = use[0][0] == 'g';
        const double base = is_weight ? 31.8 : is_gradient ? 26.5 : m == 3 ? 24.0 : 30.2;
        list.push_back({{"module", "decoder.layers." + std::to_string(layer) + '.' + kModules[m]},
                        {"operand", use[0]},
                        {"gemm", use[1]},
                        {"scheme", is_gradient ? "E5M2 1x128"
                                   : is_weight ? "E4M3 128x128"
                                               : "E4M3 1x128"},
                        {"sqnr_db", base - 0.5 * layer + 0.3 * noise(generator)},
                        {"saturated", m == 3 && !is_weight ? 0.00031 : 0.0},
                        {"underflowed", is_gradient ? 0.0042 : 0.0007},
                        {"non_finite", 0},
                        {"elements", 524288}});
      }
    }
  }
  list[5]["sqnr_db"] = nullptr;
  write_file(folder / "quantization.json", list.dump());
}

inline void write_fake_run(const FakeRun& run, const std::filesystem::path& folder) {
  write_metrics(run, folder);
  if (run.is_quantized) write_quantization(run, folder);
  const nlohmann::json config = {
      {"recipe", run.recipe},
      {"seed", 1234},
      {"data", "data/kjv.txt"},
      {"compute_dtype", "bf16"},
      {"model",
       {{"num_layers", run.layers},
        {"hidden_size", 128},
        {"num_attention_heads", 4},
        {"seq_length", 128}}},
      {"optimizer",
       {{"lr", 3e-3}, {"min_lr", 3e-4}, {"betas", {0.9, 0.95}}, {"weight_decay", 0.1}}}};
  write_file(folder / "config.json", config.dump(2));
  nlohmann::json times = {{"gemm", {{"calls", 38400}, {"seconds", 61.2}}},
                          {"flash_attention_forward", {{"calls", 1600}, {"seconds", 12.4}}},
                          {"flash_attention_backward", {{"calls", 1600}, {"seconds", 21.9}}},
                          {"layer_norm", {{"calls", 7200}, {"seconds", 3.1}}},
                          {"gelu", {{"calls", 3200}, {"seconds", 5.6}}},
                          {"cross_entropy", {{"calls", 800}, {"seconds", 1.2}}},
                          {"adam", {{"calls", 400}, {"seconds", 2.4}}}};
  if (run.is_quantized) {
    times["gemm"]["seconds"] = 66.0;
    times["quantize"] = {{"calls", 57600}, {"seconds", 17.8}};
  }
  write_file(folder / "op_times.json", times.dump());
  write_file(
      folder / "samples.txt",
      "In the beginning of the day of the LORD, and he said unto them, Behold, I will send the "
      "children of Israel,\nand they shall be as the sand of the sea & the <host> of "
      "heaven.\n\nAnd it came to "
      "pass \xC3\x28 that the king said, Let not my lord go down.\n");
}

}  // namespace kitchen::testing
