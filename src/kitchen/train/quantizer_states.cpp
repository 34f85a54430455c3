#include "kitchen/train/quantizer_states.h"

#include "kitchen/base/error.h"

#include <fmt/format.h>

#include <set>
#include <string>

namespace kitchen::train {

namespace {

constexpr std::string_view kSuffix = "_extra_state";

bool is_extra_state(const std::string& name) {
  return name.size() >= kSuffix.size() &&
         name.compare(name.size() - kSuffix.size(), kSuffix.size(), kSuffix) == 0;
}

/// A scale of 1 or a stream that starts anew would train on, but not as the run that was stopped.
void require_saved(const LoadedCheckpoint& checkpoint, const std::vector<NamedTensor>& states) {
  std::set<std::string> saved;
  for (const CheckpointPiece& piece : checkpoint.index().pieces) saved.insert(piece.name);
  for (const NamedTensor& state : states) {
    if (saved.count(state.name) != 0) continue;
    throw ValueError(fmt::format(
        "{}: '{}' is missing: the checkpoint was saved without the state of its quantizers (amax "
        "histories, rounding streams), which the recipe needs to go on; start a new run in another "
        "--run-dir",
        checkpoint.folder(), state.name));
  }
}

}  // namespace

std::vector<NamedTensor> quantizer_states(const Module& model) {
  std::vector<NamedTensor> states;
  const StateDict all = model.state_dict();
  for (const auto& [name, tensor] : all.items()) {
    if (is_extra_state(name) && tensor.numel() > 0) states.push_back({name, tensor});
  }
  return states;
}

void load_with_quantizer_states(const LoadedCheckpoint& checkpoint, CheckpointTensors targets,
                                Module& model) {
  const std::vector<NamedTensor> states = quantizer_states(model);
  require_saved(checkpoint, states);
  targets.model.insert(targets.model.end(), states.begin(), states.end());
  checkpoint.load_into(targets);
  StateDict loaded;
  for (const NamedTensor& state : states) loaded.set(state.name, state.tensor);
  model.load_state_dict(loaded, /*strict=*/false);
}

}  // namespace kitchen::train
