#include "kitchen/analysis/recipe_check.h"

#include "kitchen/analysis/text_table.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/config/layer_match.h"
#include "kitchen/extension/validate_recipe.h"
#include "kitchen/modules/finish_init.h"
#include "kitchen/parallel/rng_tracker.h"
#include "kitchen/train/model_factory.h"

#include <fmt/format.h>

namespace kitchen::analysis {

namespace {

/// Paths of the layers that a recipe chooses a configuration for, with their classes.
std::vector<std::pair<std::string, std::string>> recipe_layers(const GPTModel& model) {
  std::vector<std::pair<std::string, std::string>> layers;
  for (const auto& [path, module] : model.named_modules()) {
    if (dynamic_cast<const FinishInit*>(module.get()) != nullptr) {
      layers.emplace_back(path, module->class_name());
    }
  }
  return layers;
}

}  // namespace

RecipeCheck check_recipe(const train::TrainSettings& settings, const ContextPtr& device_context) {
  train::validate(settings);
  // A rank state of its own: the model that is only built to be looked at must leave no trace.
  const RankScope scope(std::make_shared<RankState>());
  set_default_context(make_meta_context(*device_context));
  model_parallel_cuda_manual_seed(static_cast<std::uint64_t>(settings.seed));
  const std::shared_ptr<TransformerConfig> config = train::make_transformer_config(settings);
  const std::shared_ptr<GPTModel> model = train::make_model(settings, config);

  const auto layers = recipe_layers(*model);
  std::vector<std::string> paths;
  for (const auto& layer : layers) paths.push_back(layer.first);
  const std::vector<LayerMatch> matches = match_layers(*config->quant_recipe, paths);
  std::vector<std::vector<std::string>> rows{{"layer", "class", "rule", "config"}};
  for (std::size_t i = 0; i < matches.size(); ++i) {
    rows.push_back(
        {matches[i].module_path, layers[i].second, matches[i].matcher, matches[i].config_key});
  }
  RecipeCheck check{recipe_warnings(*config->quant_recipe),
                    format_table(rows) + "\n" + describe_recipe(*config->quant_recipe)};
  if (!settings.use_kitchen_attention) {
    check.text +=
        "\nAttention cores are not Kitchen's without --use-kitchen-attention, so no rule is asked "
        "for them.\n";
  }
  return check;
}

}  // namespace kitchen::analysis
