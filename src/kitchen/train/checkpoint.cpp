#include "kitchen/train/checkpoint.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/train/box.h"
#include "kitchen/train/checkpoint_errors.h"
#include "kitchen/train/checkpoint_folder.h"
#include "kitchen/train/checksum.h"
#include "kitchen/train/durable_file.h"
#include "kitchen/train/safetensors.h"
#include "kitchen/train/tensor_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace kitchen::train {

namespace {

using PiecesByName = std::map<std::string, std::vector<const CheckpointPiece*>>;

PiecesByName pieces_of(const CheckpointIndex& index, const std::string& part) {
  PiecesByName pieces;
  for (const CheckpointPiece& piece : index.pieces) {
    if (piece.part == part) pieces[piece.name].push_back(&piece);
  }
  return pieces;
}

std::string indented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

/// @throws RuntimeError if the file is not what the index says.
void verify_file(const std::string& folder, const CheckpointFile& file) {
  const std::string path = folder + "/" + file.name;
  const std::int64_t found = FileReader(path).bytes();
  if (found != file.bytes) {
    throw RuntimeError(fmt::format("{}: wanted {} bytes, got {}: the file is {}", path, file.bytes,
                                   found, found < file.bytes ? "cut" : "longer than it was saved"));
  }
  const std::string checksum = checksum_of_file(path);
  if (checksum != file.checksum) {
    throw RuntimeError(fmt::format("{}: wanted checksum {}, got {}: the file is damaged", path,
                                   file.checksum, checksum));
  }
}

void verify_piece(const SafetensorsFile& file, const CheckpointPiece& piece) {
  const std::size_t rank = piece.shape.size();
  if (piece.global_shape.size() != rank || piece.global_offset.size() != rank) {
    throw RuntimeError(
        fmt::format("{}: index.json gives tensor '{}' shape {}, offset {}, global shape {}, "
                    "expected equal ranks",
                    file.path(), piece.name, to_string(piece.shape), to_string(piece.global_offset),
                    to_string(piece.global_shape)));
  }
  const SafetensorsEntry* entry = file.find(piece.name);
  if (entry == nullptr || entry->dtype != piece.dtype || entry->shape != piece.shape) {
    throw RuntimeError(fmt::format(
        "{}: index.json promises tensor '{}' of {} {}, the file holds {}", file.path(), piece.name,
        to_string(piece.dtype), to_string(piece.shape),
        entry == nullptr ? "none"
                         : fmt::format("{} {}", to_string(entry->dtype), to_string(entry->shape))));
  }
}

/// Why `named` cannot be filled from these pieces, or an empty text.
std::string mismatch(const NamedTensor& named, const PiecesByName& pieces) {
  const auto found = pieces.find(named.name);
  if (found == pieces.end()) return "not in the checkpoint";
  const CheckpointPiece& first = *found->second.front();
  const Box target = box_of(named);
  if (first.global_shape != target.global_shape || first.dtype != named.tensor.dtype()) {
    return fmt::format("checkpoint has {} {}, the model wants {} {}", to_string(first.dtype),
                       to_string(first.global_shape), to_string(named.tensor.dtype()),
                       to_string(target.global_shape));
  }
  std::int64_t covered = 0;
  for (const CheckpointPiece* piece : found->second) {
    covered += intersection_numel(box_of(*piece), target);
  }
  if (covered == named.tensor.numel()) return {};
  return fmt::format("the shards of the checkpoint hold {} of {} elements", covered,
                     named.tensor.numel());
}

void list_problems(const std::string& part, const std::vector<NamedTensor>& targets,
                   const PiecesByName& pieces, bool allow_unused,
                   std::vector<std::string>& problems) {
  if (targets.empty()) return;
  std::set<std::string> wanted;
  for (const NamedTensor& named : targets) {
    wanted.insert(named.name);
    const std::string problem = mismatch(named, pieces);
    if (!problem.empty()) problems.push_back(fmt::format("{} '{}': {}", part, named.name, problem));
  }
  if (allow_unused) return;
  for (const auto& [name, shards] : pieces) {
    if (wanted.count(name) == 0) {
      problems.push_back(fmt::format("{} '{}': checkpoint has {}, the model has no such tensor",
                                     part, name, to_string(shards.front()->global_shape)));
    }
  }
}

using OpenFiles = std::map<std::string, SafetensorsFile>;

void load_one(const NamedTensor& named, const std::vector<const CheckpointPiece*>& pieces,
              const OpenFiles& files) {
  const Box target = box_of(named);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(named.tensor.nbytes()));
  for (const CheckpointPiece* piece : pieces) {
    const Box source = box_of(*piece);
    if (intersection_numel(source, target) == 0) continue;
    copy_intersection(source, files.at(piece->file).read_bytes(piece->name), target, bytes,
                      size_of(piece->dtype));
  }
  set_bytes(named.tensor, bytes);
}

/// Steps in the order in which they are tried.
std::vector<std::int64_t> candidates(const std::string& root) {
  std::vector<std::int64_t> steps = checkpoint_steps(root);
  std::reverse(steps.begin(), steps.end());
  const std::optional<std::int64_t> tracked = read_tracker(root);
  // Steps beyond the tracker were never committed: they are the last resort.
  if (tracked) {
    std::stable_partition(steps.begin(), steps.end(),
                          [&](std::int64_t step) { return step <= *tracked; });
    if (steps.empty() || steps.front() != *tracked) {
      logger().warning(fmt::format("{}/{} names step {}, but there is no such checkpoint", root,
                                   kTrackerName, *tracked));
    }
  } else if (!steps.empty()) {
    logger().warning(
        fmt::format("{}/{} names no step; taking the newest checkpoint", root, kTrackerName));
  }
  return steps;
}

}  // namespace

LoadedCheckpoint LoadedCheckpoint::open(const std::string& folder) {
  LoadedCheckpoint loaded;
  loaded.folder_ = folder;
  const std::string index_path = folder + "/" + kIndexName;
  loaded.index_ = parse_index_text(index_path, read_file(index_path));
  OpenFiles files;
  for (const CheckpointFile& file : loaded.index_.files) {
    verify_file(folder, file);
    files.emplace(file.name, SafetensorsFile::open(folder + "/" + file.name));
  }
  for (const CheckpointPiece& piece : loaded.index_.pieces) {
    const auto file = files.find(piece.file);
    if (file == files.end()) {
      throw RuntimeError(fmt::format("{}: tensor '{}' is in {}, which is not in the list of files",
                                     index_path, piece.name, piece.file));
    }
    verify_piece(file->second, piece);
  }
  return loaded;
}

std::string LoadedCheckpoint::recipe_or(const std::string& fallback) const {
  if (index_.recipe) return *index_.recipe;
  logger().warning(fmt::format("{}: the checkpoint has no entry 'recipe'; assuming the default, {}",
                               folder_, fallback));
  return fallback;
}

void LoadedCheckpoint::load_into(const CheckpointTensors& targets, bool allow_unused) const {
  const PiecesByName model = pieces_of(index_, "model");
  const PiecesByName optimizer = pieces_of(index_, "optimizer");
  std::vector<std::string> problems;
  list_problems("model", targets.model, model, allow_unused, problems);
  list_problems("optimizer", targets.optimizer, optimizer, allow_unused, problems);
  if (!problems.empty()) {
    throw RuntimeError(fmt::format(
        "{}: {} tensors do not fit, nothing was loaded; use the model configuration of the "
        "checkpoint:{}",
        folder_, problems.size(), indented(problems)));
  }
  OpenFiles files;
  for (const CheckpointFile& file : index_.files) {
    files.emplace(file.name, SafetensorsFile::open(folder_ + "/" + file.name));
  }
  for (const NamedTensor& named : targets.model) load_one(named, model.at(named.name), files);
  for (const NamedTensor& named : targets.optimizer) {
    load_one(named, optimizer.at(named.name), files);
  }
}

std::optional<LoadedCheckpoint> open_latest_checkpoint(const std::string& root) {
  std::vector<std::string> refused;
  for (const std::int64_t step : candidates(root)) {
    const std::string folder = checkpoint_folder(root, step);
    try {
      LoadedCheckpoint loaded = LoadedCheckpoint::open(folder);
      if (!refused.empty()) {
        logger().warning(
            fmt::format("going on from {}; refused were:{}", folder, indented(refused)));
      }
      return loaded;
    } catch (const UnknownVersionError&) {
      throw;
    } catch (const Error& error) {
      refused.emplace_back(error.what());
    }
  }
  if (refused.empty()) return std::nullopt;
  throw RuntimeError(fmt::format("{}: no checkpoint can be loaded:{}\nPut an intact copy back, or start anew in another "
                  "--run-dir",
                  root, indented(refused)));
}

}  // namespace kitchen::train
