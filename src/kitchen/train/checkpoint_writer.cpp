#include "kitchen/train/checkpoint_writer.h"

#include "kitchen/base/error.h"
#include "kitchen/train/box.h"
#include "kitchen/train/checkpoint_folder.h"
#include "kitchen/train/durable_file.h"
#include "kitchen/train/safetensors.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <utility>

namespace kitchen::train {

namespace {

namespace fs = std::filesystem;

/// "model.safetensors", or "model-00001-of-00004.safetensors" when there are several ranks.
std::string file_name(const char* part, int rank, int num_ranks) {
  if (num_ranks == 1) return fmt::format("{}.safetensors", part);
  return fmt::format("{}-{:05}-of-{:05}.safetensors", part, rank + 1, num_ranks);
}

TensorsByName by_name(const std::vector<NamedTensor>& tensors) {
  TensorsByName result;
  for (const NamedTensor& named : tensors) result.emplace_back(named.name, named.tensor);
  return result;
}

SafetensorsMetadata metadata_of(std::int64_t step) {
  return {{"format", "pt"}, {"step", std::to_string(step)}, weight_layout_metadata()};
}

void add_pieces(const char* part, const std::string& file, const std::vector<NamedTensor>& tensors,
                CheckpointIndex& index) {
  for (const NamedTensor& named : tensors) {
    const Box box = box_of(named);
    index.pieces.push_back({part, named.name, file, named.tensor.dtype(), named.tensor.shape(),
                            box.global_shape, box.offset});
  }
}

/// Shards of one tensor must be parts of one whole, and no element may come twice.
void check_pieces(const std::vector<CheckpointPiece>& pieces) {
  std::map<std::pair<std::string, std::string>, std::vector<const CheckpointPiece*>> by_tensor;
  for (const CheckpointPiece& piece : pieces) {
    auto& group = by_tensor[{piece.part, piece.name}];
    for (const CheckpointPiece* other : group) {
      if (other->global_shape != piece.global_shape || other->dtype != piece.dtype) {
        throw ValueError(fmt::format(
            "checkpoint: '{}' is a shard of {} {} in {} and of {} {} in {}; all ranks must agree",
            piece.name, to_string(other->dtype), to_string(other->global_shape), other->file,
            to_string(piece.dtype), to_string(piece.global_shape), piece.file));
      }
      if (intersection_numel(box_of(*other), box_of(piece)) > 0) {
        throw ValueError(fmt::format(
            "checkpoint: shards of '{}' overlap: offset {} shape {} in {}, offset {} shape {} in "
            "{}; let one rank save a replicated tensor",
            piece.name, to_string(other->global_offset), to_string(other->shape), other->file,
            to_string(piece.global_offset), to_string(piece.shape), piece.file));
      }
    }
    group.push_back(&piece);
  }
}

/// Cheap test, without reading data: is this folder worth to be counted as a checkpoint?
bool looks_complete(const std::string& folder) {
  try {
    const CheckpointIndex index = parse_index_text(folder, read_file(folder + "/" + kIndexName));
    for (const CheckpointFile& file : index.files) {
      if (static_cast<std::int64_t>(fs::file_size(folder + "/" + file.name)) != file.bytes) {
        return false;
      }
    }
    return true;
  } catch (const Error&) {
    return false;
  } catch (const fs::filesystem_error&) {
    return false;
  }
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string root, std::int64_t step, int num_ranks)
    : root_(std::move(root)), step_(step), num_ranks_(num_ranks) {
  if (step < 0 || num_ranks < 1) {
    throw ValueError(
        fmt::format("CheckpointWriter: step {} and {} ranks, expected at least step 0 "
                    "and 1 rank",
                    step, num_ranks));
  }
}

std::string CheckpointWriter::part_path(int rank) const {
  return fmt::format("{}/part-{:05}.json", temporary_folder(root_, step_), rank);
}

void CheckpointWriter::begin() const {
  check_writable(root_);
  remove_leftovers(root_);
  check_writable(temporary_folder(root_, step_));
}

void CheckpointWriter::write_shard(int rank, const CheckpointTensors& tensors,
                                   const std::string& rank_state) const {
  if (rank < 0 || rank >= num_ranks_) {
    throw ValueError(fmt::format("CheckpointWriter: rank {} of {} ranks", rank, num_ranks_));
  }
  try {
    write_files(rank, tensors, rank_state);
  } catch (const Error&) {
    // Gives the space back at once; the old checkpoint is untouched.
    std::error_code ignored;
    fs::remove_all(temporary_folder(root_, step_), ignored);
    throw;
  }
}

void CheckpointWriter::write_files(int rank, const CheckpointTensors& tensors,
                                   const std::string& rank_state) const {
  const std::string folder = temporary_folder(root_, step_);
  const SafetensorsMetadata metadata = metadata_of(step_);
  const std::pair<const char*, const std::vector<NamedTensor>*> parts[] = {
      {"model", &tensors.model}, {"optimizer", &tensors.optimizer}};
  CheckpointIndex index;
  index.step = step_;
  index.rank_states = {rank_state};
  std::int64_t needed_bytes = 0;
  for (const auto& [part, named] : parts) {
    add_pieces(part, file_name(part, rank, num_ranks_), *named, index);
    needed_bytes += safetensors_bytes(by_name(*named), metadata);
  }
  require_free_bytes(folder, needed_bytes);
  for (const auto& [part, named] : parts) {
    const std::string name = file_name(part, rank, num_ranks_);
    const SavedFile saved = save_safetensors(folder + "/" + name, by_name(*named), metadata);
    index.files.push_back({name, saved.bytes, saved.checksum});
  }
  replace_file(part_path(rank), to_index_text(index));
}

CheckpointIndex CheckpointWriter::joined_index(const CheckpointState& state) const {
  CheckpointIndex index;
  index.step = step_;
  index.training_state = state.training_state;
  index.recipe = state.recipe;
  index.config = state.config;
  for (int rank = 0; rank < num_ranks_; ++rank) {
    CheckpointIndex part = parse_index_text(part_path(rank), read_file(part_path(rank)));
    std::move(part.files.begin(), part.files.end(), std::back_inserter(index.files));
    std::move(part.pieces.begin(), part.pieces.end(), std::back_inserter(index.pieces));
    index.rank_states.push_back(part.rank_states.at(0));
  }
  check_pieces(index.pieces);
  return index;
}

void CheckpointWriter::commit(const CheckpointState& state, int keep_last) const {
  const std::string folder = temporary_folder(root_, step_);
  try {
    const std::string text = to_index_text(joined_index(state));
    const auto text_bytes = static_cast<std::int64_t>(text.size());
    FileWriter writer(folder + "/" + kIndexName, text_bytes);
    writer.write(text.data(), text_bytes);
    writer.finish();
    for (int rank = 0; rank < num_ranks_; ++rank) {
      std::error_code ignored;
      fs::remove(part_path(rank), ignored);
    }
    sync_folder(folder);
    publish_folder(root_, step_);
    write_tracker(root_, step_);
  } catch (const Error&) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    throw;
  }
  keep_newest_checkpoints(root_, step_, keep_last);
}

void keep_newest_checkpoints(const std::string& root, std::int64_t step, int keep_last) {
  if (keep_last <= 0) return;
  const std::vector<std::int64_t> steps = checkpoint_steps(root);
  int kept = 0;
  for (std::size_t i = steps.size(); i-- > 0;) {
    const std::string folder = checkpoint_folder(root, steps[i]);
    if (steps[i] > step || !looks_complete(folder)) continue;
    if (++kept > keep_last) remove_checkpoint(root, steps[i]);
  }
}

void save_checkpoint(const std::string& root, const CheckpointTensors& tensors,
                     const CheckpointState& state, int keep_last) {
  const CheckpointWriter writer(root, state.step, 1);
  writer.begin();
  writer.write_shard(0, tensors);
  writer.commit(state, keep_last);
}

}  // namespace kitchen::train
