#pragma once

#include "kitchen/base/tensor.h"
#include "kitchen/train/checkpoint_index.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kitchen::train {

/// A tensor under the name it has in a checkpoint, and its place in the logical tensor of all
/// ranks. With empty global sizes the tensor's own ShardInfo counts, else the tensor is the whole.
struct NamedTensor {
  std::string name;
  Tensor tensor;
  Shape global_shape = {};
  Shape global_offset = {};
};

/// What one rank saves or loads. Parts have separate name spaces. When saving, a replicated tensor
/// is listed by one rank only.
struct CheckpointTensors {
  std::vector<NamedTensor> model;
  std::vector<NamedTensor> optimizer;
};

/// What the whole run saves beside the tensors.
struct CheckpointState {
  std::int64_t step = 0;
  std::string training_state = "{}";  ///< JSON of the caller, e.g. consumed samples
  std::optional<std::string> recipe = std::nullopt;
  std::optional<std::string> config = std::nullopt;
};

/// A checkpoint folder that was verified when it was opened: every byte was read and compared with
/// the checksums.
class LoadedCheckpoint {
 public:
  /// @throws UnknownVersionError for another format version; RuntimeError naming the file, with
  /// sizes or checksums wanted and got.
  static LoadedCheckpoint open(const std::string& folder);

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::int64_t step() const { return index_.step; }
  /// The caller's JSON without white space.
  [[nodiscard]] const std::string& training_state() const { return index_.training_state; }
  /// One JSON text for each rank that saved.
  [[nodiscard]] const std::vector<std::string>& rank_states() const { return index_.rank_states; }
  [[nodiscard]] const std::optional<std::string>& config() const { return index_.config; }
  /// The saved recipe. A checkpoint without one takes `fallback`, with a warning.
  [[nodiscard]] std::string recipe_or(const std::string& fallback) const;
  [[nodiscard]] const CheckpointIndex& index() const { return index_; }

  /// Overwrites the tensors in place, whatever the number of ranks was that saved: a target is put
  /// together from all shards that it overlaps. Nothing is converted; bytes arrive as they were
  /// saved.
  ///
  /// An empty part of `targets` is not looked at. All targets are checked before the first is
  /// written.
  /// @param allow_unused False refuses tensors of the checkpoint that no target asks for.
  /// @throws RuntimeError listing every tensor that is missing, unused, of another shape or dtype,
  /// or only partly there, with both shapes; no target was changed then.
  void load_into(const CheckpointTensors& targets, bool allow_unused = false) const;

 private:
  LoadedCheckpoint() = default;

  std::string folder_;
  CheckpointIndex index_;
};

/// Opens the checkpoint that the tracker file names. If it is missing or damaged, the newest one
/// before it is opened, with a warning that names both and the reason.
/// @returns nothing if `root` holds no checkpoint.
/// @throws UnknownVersionError for another format version; RuntimeError listing the reasons if
/// every checkpoint is refused.
std::optional<LoadedCheckpoint> open_latest_checkpoint(const std::string& root);

/// Saves the checkpoint of a single rank: all calls of a CheckpointWriter in one.
/// @param keep_last How many complete checkpoints stay, this one included; 0 keeps all.
void save_checkpoint(const std::string& root, const CheckpointTensors& tensors,
                     const CheckpointState& state, int keep_last = 0);

}  // namespace kitchen::train
