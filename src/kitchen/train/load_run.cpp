#include "kitchen/train/load_run.h"

#include "kitchen/base/error.h"
#include "kitchen/parallel/rng_tracker.h"
#include "kitchen/train/checkpoint.h"
#include "kitchen/train/model_factory.h"
#include "kitchen/train/quantizer_states.h"
#include "kitchen/train/run_folder.h"
#include "kitchen/train/run_results.h"

namespace kitchen::train {

std::shared_ptr<GPTModel> load_run_model(const std::string& run_dir) {
  const RunFolder folder = RunFolder::open(run_dir, /*resume=*/true);
  const std::optional<LoadedCheckpoint> checkpoint =
      open_latest_checkpoint(folder.checkpoint_path());
  if (!checkpoint || !checkpoint->config()) {
    throw ValueError(folder.checkpoint_path() +
                     ": holds no checkpoint; train the run to its end, or to a "
                     "--save-interval, first");
  }
  TrainSettings settings;
  update_from_json(settings, *checkpoint->config());
  const std::shared_ptr<TransformerConfig> config = make_transformer_config(settings);
  const std::string recipe = recipe_text(*config);
  if (checkpoint->recipe_or(recipe) != recipe) {
    throw ValueError(run_dir + ": the recipe file " + settings.kitchen_config_file.value_or("") +
                     " says something else than when the run was trained; put the former one back");
  }
  model_parallel_cuda_manual_seed(static_cast<std::uint64_t>(settings.seed));
  std::shared_ptr<GPTModel> model = make_model(settings, config);
  CheckpointTensors targets;
  for (const auto& [name, parameter] : model->named_parameters()) {
    targets.model.push_back({name, parameter->detach()});
    parameter->bump_version();
  }
  load_with_quantizer_states(*checkpoint, std::move(targets), *model);
  model->eval();
  return model;
}

}  // namespace kitchen::train
