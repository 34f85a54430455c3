#pragma once

#include "kitchen/config/transformer_config.h"

#include <cstdint>
#include <optional>
#include <string>

namespace kitchen {

/// The command-line values that choose quantized layers, as the user gave them.
struct KitchenFlags {
  std::optional<std::string> kitchen_config_file;     ///< --kitchen-config-file PATH
  std::optional<std::int64_t> kitchen_recipe_number;  ///< --kitchen-recipe-number N
  std::optional<std::string> kitchen_recipe_name;     ///< --kitchen-recipe-name NAME (Ext)
  bool use_kitchen_attention = false;                 ///< --use-kitchen-attention
  std::string kitchen_attention_backend = "sdpa";     ///< --kitchen-attention-backend sdpa|fa
};

/// Sets use_kitchen, quant_recipe, use_kitchen_attention and kitchen_attention_backend of `config`.
///
/// @throws ValueError if two of the three recipe flags are given, or if the backend is neither sdpa
/// nor fa;
///         AssertionError "already configured" if a recipe flag meets a config that has a recipe;
///         and what loading the recipe file throws.
/// Warns if Kitchen attention is asked for without a recipe, since it then has no effect.
void apply_kitchen_flags(const KitchenFlags& flags, TransformerConfig& config);

}  // namespace kitchen
