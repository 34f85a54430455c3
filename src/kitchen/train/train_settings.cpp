#include "kitchen/train/train_settings.h"

#include "kitchen/base/error.h"
#include "kitchen/base/nearest_name.h"
#include "kitchen/config/config_value.h"
#include "kitchen/train/batch_sizes.h"
#include "kitchen/train/parallel_settings.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kitchen::train {

namespace {

using Json = nlohmann::ordered_json;

std::string key_of(const Setting& setting) {
  std::string key = setting.name;
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

Json value_of(const TrainSettings& settings, const Setting& setting) {
  return std::visit(
      [&](auto member) -> Json {
        const auto& value = settings.*member;
        if constexpr (IsOptional<std::decay_t<decltype(value)>>::value) {
          if (!value) return nullptr;
          return *value;
        } else {
          return value;
        }
      },
      setting.member);
}

[[noreturn]] void mistyped(const std::string& key, const std::string& found, const char* wanted) {
  throw TypeError("setting " + key + " is " + found + ", expected " + wanted);
}

/// Reads a JSON value into a member; null only where the member is optional.
struct Assign {
  const Json& value;
  const std::string& key;

  void operator()(std::int64_t& target) const {
    constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const bool fits = value.is_number_integer() &&
                      !(value.is_number_unsigned() && value.get<std::uint64_t>() > kLargest);
    if (!fits) mistyped(key, value.dump(), "an integer of 64 bits");
    target = value.get<std::int64_t>();
  }
  void operator()(double& target) const {
    if (!value.is_number()) mistyped(key, value.dump(), "a number");
    target = value.get<double>();
  }
  void operator()(bool& target) const {
    if (!value.is_boolean()) mistyped(key, value.dump(), "true or false");
    target = value.get<bool>();
  }
  void operator()(std::string& target) const {
    if (!value.is_string()) mistyped(key, value.dump(), "a text");
    target = value.get<std::string>();
  }
  template <class T>
  void operator()(std::optional<T>& target) const {
    if (value.is_null()) {
      target = std::nullopt;
      return;
    }
    T inner{};
    (*this)(inner);
    target = inner;
  }
};

void assign(TrainSettings& settings, const Setting& setting, const Json& value) {
  const std::string key = key_of(setting);
  std::visit([&](auto member) { Assign{value, key}(settings.*member); }, setting.member);
}

const Setting* find_setting(const std::string& key) {
  for (const Setting& setting : setting_table()) {
    if (key_of(setting) == key) return &setting;
  }
  return nullptr;
}

[[noreturn]] void unknown_key(const std::string& key) {
  std::vector<std::string> known;
  for (const Setting& setting : setting_table()) known.push_back(key_of(setting));
  throw KeyError("setting '" + key + "' is not known. " + did_you_mean(key, known));
}

Json to_json_value(const ConfigValue& value, const std::string& key) {
  if (value.is_null()) return nullptr;
  if (const auto* v = value.get_if<bool>()) return *v;
  if (const auto* v = value.get_if<std::int64_t>()) return *v;
  if (const auto* v = value.get_if<double>()) return *v;
  if (const auto* v = value.get_if<std::string>()) return *v;
  mistyped(key, describe(value), "a single value");
}

void require(bool good, const std::string& message) {
  if (!good) throw ValueError(message);
}

void require_positive(const char* flag, std::int64_t value) {
  require(value > 0, std::string("--") + flag + " is " + std::to_string(value) +
                         ", expected a positive number");
}

/// Far above any model of one machine, and low enough that products of two sizes fit 64 bits.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 31;
constexpr std::int64_t kMostThreads = 1024;

void require_size(const char* flag, std::int64_t value) {
  require_positive(flag, value);
  require(value <= kLargestSize, std::string("--") + flag + " is " + std::to_string(value) +
                                     ", expected at most " + std::to_string(kLargestSize));
}

void require_probability(const char* flag, double value) {
  require(value >= 0.0 && value < 1.0, std::string("--") + flag + " is " + std::to_string(value) +
                                           ", expected a probability in [0, 1)");
}

void require_finite(const TrainSettings& settings) {
  for (const Setting& setting : setting_table()) {
    const auto* member = std::get_if<double TrainSettings::*>(&setting.member);
    if (member == nullptr) continue;
    require(std::isfinite(settings.**member),
            std::string("--") + setting.name + " is not finite, expected a number");
  }
}

void validate_sizes(const TrainSettings& s) {
  require_size("num-layers", s.num_layers);
  require_size("hidden-size", s.hidden_size);
  require_size("num-attention-heads", s.num_attention_heads);
  require_size("seq-length", s.seq_length);
  require_size("micro-batch-size", s.micro_batch_size);
  require_size("vocab-size", s.vocab_size);
  require_size("make-vocab-size-divisible-by", s.make_vocab_size_divisible_by);
  if (s.ffn_hidden_size) require_size("ffn-hidden-size", *s.ffn_hidden_size);
  if (s.kv_channels) require_size("kv-channels", *s.kv_channels);
  if (s.num_query_groups) require_size("num-query-groups", *s.num_query_groups);
  if (s.max_position_embeddings) {
    require_size("max-position-embeddings", *s.max_position_embeddings);
  }
  // Zero and below are judged beside the micro batch.
  require(s.global_batch_size <= kLargestSize,
          "--global-batch-size is " + std::to_string(s.global_batch_size) + ", expected at most " +
              std::to_string(kLargestSize));
  require(s.kv_channels || s.hidden_size % s.num_attention_heads == 0,
          "--hidden-size " + std::to_string(s.hidden_size) + " is not divisible by " +
              "--num-attention-heads " + std::to_string(s.num_attention_heads) +
              "; choose sizes that fit or set --kv-channels");
  require(!s.num_query_groups || s.group_query_attention,
          "--num-query-groups needs --group-query-attention");
  require(!s.group_query_attention || s.num_query_groups,
          "--group-query-attention takes no value; use --num-query-groups N beside it");
  require(!s.num_query_groups || s.num_attention_heads % *s.num_query_groups == 0,
          "--num-attention-heads " + std::to_string(s.num_attention_heads) +
              " is not a multiple of --num-query-groups " +
              std::to_string(s.num_query_groups.value_or(0)));
}

void validate_optimizer(const TrainSettings& s) {
  require_probability("adam-beta1", s.adam_beta1);
  require_probability("adam-beta2", s.adam_beta2);
  require(s.adam_eps > 0.0, "--adam-eps is " + std::to_string(s.adam_eps) + ", expected above 0");
  require(s.weight_decay >= 0.0, "--weight-decay is negative; 0 turns it off");
  require(s.clip_grad >= 0.0, "--clip-grad is negative; 0 turns clipping off");
}

void validate_positions(const TrainSettings& s) {
  require(s.max_position_embeddings.value_or(s.seq_length) >= s.seq_length,
          "--max-position-embeddings is below --seq-length " + std::to_string(s.seq_length));
  const std::string& type = s.position_embedding_type;
  require(type == "learned_absolute" || type == "rope" || type == "none",
          "--position-embedding-type is '" + type + "', expected learned_absolute, rope or none");
  require(s.rotary_percent > 0.0 && s.rotary_percent <= 1.0,
          "--rotary-percent is " + std::to_string(s.rotary_percent) + ", expected in (0, 1]");
  require(s.rotary_base > 0.0,
          "--rotary-base is " + std::to_string(s.rotary_base) + ", expected above 0");
}

}  // namespace

std::string setting_text(const TrainSettings& settings, const Setting& setting) {
  return value_of(settings, setting).dump();
}

std::string to_json(const TrainSettings& settings) {
  Json root;
  for (const Setting& setting : setting_table()) {
    root[setting.section][key_of(setting)] = value_of(settings, setting);
  }
  return root.dump(2);
}

void update_from_json(TrainSettings& settings, const std::string& json) {
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) throw ValueError("settings: the text is no JSON object");
  for (const auto& [section, entries] : root.items()) {
    if (!entries.is_object()) {
      throw ValueError("settings: '" + section + "' is " + entries.dump() +
                       ", expected a section such as {\"model\": {\"num_layers\": 4}}");
    }
    for (const auto& [key, value] : entries.items()) {
      const Setting* setting = find_setting(key);
      if (setting == nullptr) unknown_key(key);
      assign(settings, *setting, value);
    }
  }
}

void update_from_config(TrainSettings& settings, const ConfigDict& values) {
  for (const ConfigDict::Entry& entry : values) {
    const Setting* setting = find_setting(entry.key);
    if (setting == nullptr) unknown_key(entry.key);
    assign(settings, *setting, to_json_value(entry.value, entry.key));
  }
}

void validate(const TrainSettings& s) {
  require_finite(s);
  validate_sizes(s);
  require_positive("train-iters", s.train_iters);
  require_positive("log-interval", s.log_interval);
  require_positive("eval-iters", s.eval_iters);
  if (s.exit_interval) require_positive("exit-interval", *s.exit_interval);
  if (s.save_interval) require_positive("save-interval", *s.save_interval);
  require(s.eval_interval >= 0, "--eval-interval is negative; 0 validates at the end only");
  require(s.keep_checkpoints >= 0, "--keep-checkpoints is negative; 0 keeps all");
  require_probability("hidden-dropout", s.hidden_dropout);
  require_probability("attention-dropout", s.attention_dropout);
  require(s.precision == "bf16" || s.precision == "fp32",
          "precision is '" + s.precision + "', expected bf16 or fp32");
  require(
      s.transformer_impl == "transformer_engine" || s.transformer_impl == "local",
      "--transformer-impl is '" + s.transformer_impl + "', expected transformer_engine or local");
  require(s.backend == "auto" || s.backend == "cpu" || s.backend == "cuda",
          "--backend is '" + s.backend + "', expected auto, cpu or cuda");
  require(!s.recompute_granularity || *s.recompute_granularity == "selective",
          "--recompute-granularity is '" + s.recompute_granularity.value_or("") +
              "', expected selective");
  require(s.normalization == "LayerNorm" || s.normalization == "RMSNorm",
          "--normalization is '" + s.normalization + "', expected LayerNorm or RMSNorm");
  require(s.sample_tokens >= 0, "--sample-tokens is negative; 0 writes no samples");
  require(s.num_threads >= 0, "--num-threads is negative; 0 takes all cores");
  require(s.num_threads <= kMostThreads,
          "--num-threads is " + std::to_string(s.num_threads) + ", expected at most " +
              std::to_string(kMostThreads) + "; 0 takes all cores");
  require(s.norm_epsilon > 0.0, "--norm-epsilon is not above 0");
  require(s.init_method_std >= 0.0, "--init-method-std is negative");
  validate_positions(s);
  validate_optimizer(s);
  require(s.seed >= 0, "--seed is negative");
  validate_parallel(s);
  (void)num_micro_batches(s.global_batch_size, s.micro_batch_size, rank_grid(s).data_size());
}

std::vector<std::string> resume_differences(const TrainSettings& saved,
                                            const TrainSettings& asked) {
  std::vector<std::string> lines;
  for (const Setting& setting : setting_table()) {
    // Data and recipe are compared by content: a moved file is the same file.
    const std::string name = setting.name;
    if (std::string(setting.section) == "run" || name == "data" || name == "kitchen-config-file") {
      continue;
    }
    const std::string before = setting_text(saved, setting);
    const std::string now = setting_text(asked, setting);
    if (before == now) continue;
    lines.push_back("--" + std::string(setting.name) + ": " + before + " in the run, " + now +
                    " asked for");
  }
  return lines;
}

}  // namespace kitchen::train
