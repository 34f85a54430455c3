#pragma once

#include "kitchen/train/checkpoint.h"

#include <cstdint>
#include <string>

namespace kitchen::train {

/// Saves one checkpoint of several ranks into `root`/iter_NNNNNNN.
///
/// Order, with a barrier of the caller between the lines:
///   rank 0:     begin()
///   every rank: write_shard()
///   rank 0:     commit()
/// Everything is written to a temporary folder and forced to the disk; the folder is then renamed,
/// the tracker file replaced, and only then older checkpoints are deleted. A run that is killed at
/// any moment leaves the old checkpoint or the new one complete, or both.
class CheckpointWriter {
 public:
  /// @param num_ranks At least 1; all ranks give the same values.
  CheckpointWriter(std::string root, std::int64_t step, int num_ranks);

  /// Removes what killed runs left and makes the temporary folder.
  void begin() const;

  /// Writes this rank's files. On failure the temporary folder is removed.
  /// @param rank_state JSON that only this rank needs, e.g. the state of its random numbers.
  /// @throws RuntimeError naming needed and free bytes if the disk is full; ValueError on bad
  /// tensors.
  void write_shard(int rank, const CheckpointTensors& tensors,
                   const std::string& rank_state = "{}") const;

  /// Joins the shards to one index, publishes the folder, and keeps the newest `keep_last`
  /// checkpoints (0: all). @throws ValueError if shards of one tensor overlap or disagree.
  void commit(const CheckpointState& state, int keep_last) const;

 private:
  [[nodiscard]] std::string part_path(int rank) const;
  [[nodiscard]] CheckpointIndex joined_index(const CheckpointState& state) const;
  void write_files(int rank, const CheckpointTensors& tensors, const std::string& rank_state) const;

  std::string root_;
  std::int64_t step_;
  int num_ranks_;
};

/// Deletes complete checkpoints up to `step`, all but the newest `keep_last` of them (0: none is
/// deleted).
void keep_newest_checkpoints(const std::string& root, std::int64_t step, int keep_last);

}  // namespace kitchen::train
