#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kitchen::train {

inline constexpr const char* kTrackerName = "latest_checkpointed_iteration.txt";
inline constexpr const char* kIndexName = "index.json";

/// `root`/iter_0000300, Megatron's name.
std::string checkpoint_folder(const std::string& root, std::int64_t step);

/// `root`/.tmp-iter_0000300: where a checkpoint is put together before it is renamed.
std::string temporary_folder(const std::string& root, std::int64_t step);

/// Steps of the folders iter_* in `root`, ascending, whatever they contain. Empty if there is no
/// `root`.
std::vector<std::int64_t> checkpoint_steps(const std::string& root);

/// The step that the tracker file names; nothing if it is missing or not what write_tracker wrote.
std::optional<std::int64_t> read_tracker(const std::string& root);

/// Replaces the tracker file atomically.
void write_tracker(const std::string& root, std::int64_t step);

/// Puts a finished temporary folder in the place of the checkpoint of `step`; an older one of the
/// same step is removed after the new one has taken its name.
void publish_folder(const std::string& root, std::int64_t step);

/// Deletes a folder such that a half deleted one never looks like a checkpoint.
void remove_checkpoint(const std::string& root, std::int64_t step);

/// Deletes what killed runs left behind: temporary folders, never checkpoints.
void remove_leftovers(const std::string& root);

}  // namespace kitchen::train
