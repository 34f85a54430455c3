#include "kitchen/train/checkpoint_index.h"

#include "kitchen/base/error.h"
#include "kitchen/train/checkpoint_errors.h"
#include "kitchen/train/checksum.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kitchen::train {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSealStart = ",\n \"checksum\": \"";
constexpr std::string_view kSealEnd = "\"\n}\n";
constexpr std::size_t kSealBytes = kSealStart.size() + 16 + kSealEnd.size();

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw RuntimeError(fmt::format("{}: {}; the checkpoint is damaged", path, reason));
}

Json parse_state(const char* what, const std::string& text) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw ValueError(fmt::format("checkpoint: the {} is no JSON text: {}", what, error.what()));
  }
}

Json to_json(const CheckpointPiece& piece) {
  return {{"part", piece.part},
          {"name", piece.name},
          {"file", piece.file},
          {"dtype", to_string(piece.dtype)},
          {"shape", piece.shape},
          {"global_shape", piece.global_shape},
          {"global_offset", piece.global_offset}};
}

CheckpointPiece piece_from(const Json& json) {
  CheckpointPiece piece;
  piece.part = json.at("part").get<std::string>();
  piece.name = json.at("name").get<std::string>();
  piece.file = json.at("file").get<std::string>();
  piece.dtype = dtype_from_string(json.at("dtype").get<std::string>());
  piece.shape = json.at("shape").get<Shape>();
  piece.global_shape = json.at("global_shape").get<Shape>();
  piece.global_offset = json.at("global_offset").get<Shape>();
  return piece;
}

CheckpointFile file_from(const Json& json) {
  return {json.at("name").get<std::string>(), json.at("bytes").get<std::int64_t>(),
          json.at("checksum").get<std::string>()};
}

std::optional<std::string> optional_text(const Json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  return json.at(key).get<std::string>();
}

CheckpointIndex index_from(const Json& json) {
  CheckpointIndex index;
  index.step = json.at("step").get<std::int64_t>();
  for (const Json& file : json.at("files")) index.files.push_back(file_from(file));
  for (const Json& piece : json.at("tensors")) index.pieces.push_back(piece_from(piece));
  index.training_state = json.at("training_state").dump();
  for (const Json& state : json.at("rank_states")) index.rank_states.push_back(state.dump());
  index.recipe = optional_text(json, "recipe");
  index.config = optional_text(json, "config");
  return index;
}

/// Why the text is not what was written, or nothing.
std::optional<std::string> broken_seal(std::string_view text) {
  if (text.size() < kSealBytes) return fmt::format("has {} bytes, too few", text.size());
  const std::string_view body = text.substr(0, text.size() - kSealBytes);
  if (text.substr(body.size()) == index_seal(body)) return std::nullopt;
  return "does not match the checksum at its end";
}

/// The version that the text claims, if it is JSON at all.
std::optional<std::int64_t> claimed_version(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("version")) return std::nullopt;
  const Json& version = json["version"];
  return version.is_number_integer() ? std::optional(version.get<std::int64_t>()) : std::nullopt;
}

}  // namespace

std::string index_seal(std::string_view body) {
  return std::string(kSealStart) + checksum_of(body) + std::string(kSealEnd);
}

std::string to_index_text(const CheckpointIndex& index) {
  Json json;
  json["format"] = "kitchen checkpoint";
  json["version"] = kCheckpointVersion;
  json["step"] = index.step;
  json["training_state"] = parse_state("training state", index.training_state);
  json["rank_states"] = Json::array();
  for (const std::string& state : index.rank_states) {
    json["rank_states"].push_back(parse_state("state of a rank", state));
  }
  if (index.recipe) json["recipe"] = *index.recipe;
  if (index.config) json["config"] = *index.config;
  json["files"] = Json::array();
  for (const CheckpointFile& file : index.files) {
    json["files"].push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"checksum", file.checksum}});
  }
  json["tensors"] = Json::array();
  for (const CheckpointPiece& piece : index.pieces) json["tensors"].push_back(to_json(piece));
  std::string body;
  try {
    body = json.dump(1);
  } catch (const Json::exception& error) {
    throw ValueError(fmt::format("checkpoint: a string is no UTF-8 text: {}", error.what()));
  }
  body.resize(body.size() - 2);  // the closing "\n}" comes back with the seal
  return body + index_seal(body);
}

CheckpointIndex parse_index_text(const std::string& path, const std::string& text) {
  const std::optional<std::string> damage = broken_seal(text);
  const std::optional<std::int64_t> version = claimed_version(text);
  if (version && *version != kCheckpointVersion) {
    const std::string message = fmt::format(
        "{}: the checkpoint has format version {}, this program reads version {}; use the program "
        "that wrote it",
        path, *version, kCheckpointVersion);
    // A flipped bit can turn the version into another one: only a sealed text is believed.
    if (damage) refuse(path, fmt::format("{} ({})", *damage, message));
    throw UnknownVersionError(message);
  }
  if (damage) refuse(path, *damage);
  try {
    return index_from(Json::parse(text));
  } catch (const Json::exception& error) {
    refuse(path, fmt::format("lacks an entry ({})", error.what()));
  } catch (const ValueError& error) {
    refuse(path, error.what());
  }
}

}  // namespace kitchen::train
