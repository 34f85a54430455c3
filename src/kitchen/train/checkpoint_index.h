#pragma once

#include "kitchen/base/tensor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kitchen::train {

/// Format of the checkpoint folder that this program writes, and the only one that it reads.
inline constexpr std::int64_t kCheckpointVersion = 1;

/// A safetensors file of a checkpoint folder.
struct CheckpointFile {
  std::string name;
  std::int64_t bytes = 0;
  std::string checksum;
};

/// One shard of a logical tensor: what file holds it and where it lies in the whole.
struct CheckpointPiece {
  std::string part;  ///< "model" or "optimizer"
  std::string name;
  std::string file;
  DType dtype = DType::float32;
  Shape shape;
  Shape global_shape;
  Shape global_offset;
};

/// Contents of index.json.
struct CheckpointIndex {
  std::int64_t step = 0;
  std::vector<CheckpointFile> files;
  std::vector<CheckpointPiece> pieces;
  std::string training_state = "{}";     ///< JSON, the same for all ranks
  std::vector<std::string> rank_states;  ///< JSON, one a rank that saved
  std::optional<std::string> recipe;
  std::optional<std::string> config;
};

/// JSON text whose last entry is a checksum of all bytes before it.
/// @throws ValueError if a state is no JSON or a string no UTF-8.
std::string to_index_text(const CheckpointIndex& index);

/// The checksum entry with which an index text ends, for the bytes before it.
std::string index_seal(std::string_view body);

/// @param path For messages.
/// @throws UnknownVersionError for an intact index of another version; RuntimeError naming path and
/// cause for a damaged one.
CheckpointIndex parse_index_text(const std::string& path, const std::string& text);

}  // namespace kitchen::train
