#include "kitchen/train/run_results.h"

#include "kitchen/report/html_report.h"
#include "kitchen/report/run_summary.h"
#include "kitchen/train/byte_tokenizer.h"
#include "kitchen/train/durable_file.h"
#include "kitchen/train/generate.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace kitchen::train {

namespace {

constexpr std::int64_t kPromptTokens = 24;

std::string to_text(const std::vector<std::int64_t>& tokens, std::int64_t vocab_size) {
  if (vocab_size <= ByteTokenizer::vocab_size()) return ByteTokenizer().decode(tokens);
  std::string text;
  for (const std::int64_t id : tokens) text += std::to_string(id) + " ";
  return text;
}

}  // namespace

void write_run_results(const RunFolder& folder, const QuantizationMonitor& monitor,
                       const OpTimer& op_timer) {
  if (!monitor.empty()) replace_file(folder.quantization_path(), monitor.to_json() + "\n");
  nlohmann::ordered_json times = nlohmann::ordered_json::object();
  for (const auto& [op, time] : op_timer.times()) {
    times[op] = {{"calls", time.calls}, {"seconds", time.seconds}};
  }
  replace_file(folder.op_times_path(), times.dump(1) + "\n");
}

void write_samples(GPTModel& model, const TokenSpan& validation, const TrainSettings& settings,
                   const std::string& path) {
  std::vector<std::int64_t> prompt;
  for (std::int64_t i = 0; i < std::min(kPromptTokens, validation.size()); ++i) {
    prompt.push_back(validation[i]);
  }
  GenerateOptions options;
  options.num_tokens = settings.sample_tokens;
  options.seed = static_cast<std::uint64_t>(settings.seed);
  const std::vector<std::int64_t> continued = generate(model, prompt, options);
  replace_file(path, to_text(prompt, settings.vocab_size) +
                                  to_text(continued, settings.vocab_size) + "\n");
}

void write_run_report(const RunFolder& folder) {
  report::write_report({report::read_run(folder.path())}, folder.report_path());
}

std::string recipe_label(const TrainSettings& settings) {
  if (settings.kitchen_config_file) return *settings.kitchen_config_file;
  if (settings.kitchen_recipe_number) {
    return fmt::format("recipe number {}", *settings.kitchen_recipe_number);
  }
  if (settings.kitchen_recipe_name) return "recipe " + *settings.kitchen_recipe_name;
  return "none";
}

std::string recipe_text(const TransformerConfig& config) {
  return config.quant_recipe ? config.quant_recipe->repr() : "none";
}

}  // namespace kitchen::train
