#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kitchen {
class ConfigDict;
}

namespace kitchen::train {

/// Everything that a training run is told, under Megatron's names. Sizes count tokens, sequences or
/// features; -1 or nullopt means "derived".
struct TrainSettings {
  // model
  std::int64_t num_layers = 4;
  std::int64_t hidden_size = 128;
  std::optional<std::int64_t> ffn_hidden_size;
  std::int64_t num_attention_heads = 4;
  bool group_query_attention = false;
  std::optional<std::int64_t> num_query_groups;
  std::optional<std::int64_t> kv_channels;
  std::int64_t seq_length = 64;
  std::optional<std::int64_t> max_position_embeddings;
  std::string position_embedding_type = "learned_absolute";
  double rotary_base = 10000.0;
  double rotary_percent = 1.0;
  std::string normalization = "LayerNorm";
  double norm_epsilon = 1e-5;
  bool apply_layernorm_1p = false;
  bool qk_layernorm = false;
  std::string activation = "gelu";
  bool swiglu = false;
  bool disable_bias_linear = false;
  bool add_qkv_bias = false;
  bool untie_embeddings_and_output_weights = false;
  double init_method_std = 0.02;
  double hidden_dropout = 0.0;
  double attention_dropout = 0.0;
  bool apply_query_key_layer_scaling = false;
  std::string transformer_impl = "transformer_engine";
  std::int64_t vocab_size = 256;
  std::int64_t make_vocab_size_divisible_by = 128;

  // precision and recipe
  std::string precision = "bf16";
  std::optional<std::string> kitchen_config_file;
  std::optional<std::int64_t> kitchen_recipe_number;
  std::optional<std::string> kitchen_recipe_name;
  bool use_kitchen_attention = false;
  std::string kitchen_attention_backend = "sdpa";

  // data and schedule
  std::string data;
  std::int64_t micro_batch_size = 32;
  std::int64_t global_batch_size = 32;
  std::int64_t train_iters = 400;
  double lr = 3e-3;
  double min_lr = 3e-4;
  std::int64_t lr_warmup_iters = 20;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.95;
  double adam_eps = 1e-8;
  double weight_decay = 0.1;
  double clip_grad = 1.0;
  std::int64_t seed = 1234;

  // how the run is carried out; may differ when it is resumed
  std::string run_dir;
  bool resume = false;
  std::optional<std::int64_t> exit_interval;
  std::int64_t log_interval = 10;
  std::optional<std::int64_t> save_interval;
  std::int64_t keep_checkpoints = 2;
  std::int64_t eval_interval = 100;
  std::int64_t eval_iters = 8;
  std::string backend = "auto";
  std::optional<std::string> recompute_granularity;
  bool disable_parameter_transpose_cache = false;
  bool check_for_nan_in_loss_and_grad = false;
  std::int64_t sample_tokens = 400;
  std::int64_t num_threads = 0;

  // ranks
  std::string comm = "threads";
  std::int64_t ranks = 1;
  std::int64_t tensor_model_parallel_size = 1;
  bool sequence_parallel = false;
};

using SettingMember =
    std::variant<std::int64_t TrainSettings::*, double TrainSettings::*, bool TrainSettings::*,
                 std::string TrainSettings::*, std::optional<std::int64_t> TrainSettings::*,
                 std::optional<std::string> TrainSettings::*>;

/// One setting: its flag without dashes, its section and its place in the struct. The command line,
/// the YAML file, config.json and the resume check are all made of the one table of these.
struct Setting {
  const char* name;  ///< "num-layers"; config files write num_layers
  const char*
      section;  ///< "model", "precision", "training" or "run"; only "run" may change on resume
  const char* help;
  SettingMember member;
};

const std::vector<Setting>& setting_table();

/// The setting's value as text: 4, 0.001, true, "bf16", null.
std::string setting_text(const TrainSettings& settings, const Setting& setting);

/// All settings as an indented JSON object of sections.
std::string to_json(const TrainSettings& settings);

/// Overwrites the settings that the JSON of to_json holds. @throws ValueError naming an unknown or
/// mistyped key.
void update_from_json(TrainSettings& settings, const std::string& json);

/// Overwrites the settings that a --yaml-cfg mapping names (num_layers: 4). @throws KeyError naming
/// an unknown key and the nearest one, TypeError naming key and value.
void update_from_config(TrainSettings& settings, const ConfigDict& values);

/// Checks values that belong together, before any work.
/// @throws ValueError naming the flag, the value and what is accepted.
void validate(const TrainSettings& settings);

/// "model.hidden_size: 128 in the run, 64 asked for" for each setting outside of "run" that
/// differs.
std::vector<std::string> resume_differences(const TrainSettings& saved, const TrainSettings& asked);

}  // namespace kitchen::train
