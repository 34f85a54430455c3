#pragma once

#include "kitchen/recipes/q_attention_params.h"
#include "kitchen/recipes/q_flash_attention_params.h"
#include "kitchen/recipes/q_linear_params.h"
#include "kitchen/recipes/quantize_recipe.h"
#include "kitchen/recipes/quantize_recipe_attn_bmm.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// @file  predefined.h
/// @brief The recipe tables and their look-ups. Equal keys return the same object.
///
/// A number means a different thing in each table. Numbers without a public meaning are errors that
/// list the known numbers and names, so that a number from elsewhere fails instead of quietly
/// meaning something else.

namespace kitchen {

/// @throws ValueError naming the index; below 1: "recipe_idx must be a positive integer".
std::shared_ptr<const QLinearParams> get_qlinear_params_from_qat_params(std::int64_t recipe_idx);
/// @throws ValueError as for linear.
std::shared_ptr<const QAttentionParams> get_qattention_params_from_qat_params(
    std::int64_t recipe_idx);
/// @throws ValueError naming the text, the nearest and all known names.
std::shared_ptr<const QFlashAttentionParams> get_qfa_params_from_recipe_name(
    const std::string& recipe_name);

std::shared_ptr<const QLinearParams> get_qlinear_params_from_predefined(QuantizeRecipe recipe);
std::shared_ptr<const QAttentionParams> get_qattention_params_from_predefined(
    QuantizeRecipeAttnBMM recipe);

/// Ext: by name, "fp8_cs". Sees the recipes of register_recipe too.
/// @throws ValueError naming the text, the nearest and all known names.
std::shared_ptr<const QLinearParams> get_qlinear_params_from_recipe_name(
    const std::string& recipe_name);
/// Ext: by name, "mxfp8_emulation". @throws ValueError as above.
std::shared_ptr<const QAttentionParams> get_qattention_params_from_recipe_name(
    const std::string& recipe_name);

/// The tables in the order of the papers, for listings; without the user's.
const std::vector<std::shared_ptr<const QLinearParams>>& predefined_linear_recipes();
const std::vector<std::shared_ptr<const QAttentionParams>>& predefined_attention_recipes();
const std::vector<std::shared_ptr<const QFlashAttentionParams>>& predefined_flash_recipes();

/// Ext: makes a description reachable by its name, and by its number if it has one, on the calling
/// rank.
/// @throws ValueError if the name is empty or taken, if the number is below 1000000000 or taken, or
/// if the
///         description is refused by validate_q_linear_params.
void register_recipe(const QLinearParams& description);

}  // namespace kitchen
