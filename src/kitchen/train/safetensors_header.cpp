#include "kitchen/train/safetensors_header.h"

#include "kitchen/base/error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

namespace kitchen::train {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMetadataKey = "__metadata__";

struct DTypeName {
  DType dtype;
  const char* name;
};

constexpr std::array<DTypeName, 10> kNames{{{DType::float32, "F32"},
                                            {DType::float16, "F16"},
                                            {DType::bfloat16, "BF16"},
                                            {DType::float8_e4m3, "F8_E4M3"},
                                            {DType::float8_e5m2, "F8_E5M2"},
                                            {DType::float8_e8m0, "F8_E8M0"},
                                            {DType::int32, "I32"},
                                            {DType::int64, "I64"},
                                            {DType::uint8, "U8"},
                                            {DType::boolean, "BOOL"}}};

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw RuntimeError(fmt::format(
      "{}: {}; the file is damaged or no safetensors file, take another copy of it", path, reason));
}

/// The parser of the library keeps one of two equal keys; a file that has both is refused instead.
class DuplicateKeys {
 public:
  bool operator()(Json::parse_event_t event, const Json& value) {
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key &&
        !open_.back().insert(value.get<std::string>()).second) {
      if (found_.empty()) found_ = value.get<std::string>();
    }
    return true;
  }
  [[nodiscard]] const std::string& found() const { return found_; }

 private:
  std::vector<std::set<std::string>> open_;
  std::string found_;
};

Json parse_json(const std::string& path, const std::string& text) {
  DuplicateKeys duplicates;
  Json json;
  try {
    json = Json::parse(text, [&duplicates](int /*depth*/, Json::parse_event_t event, Json& value) {
      return duplicates(event, value);
    });
  } catch (const Json::exception& error) {
    refuse(path, fmt::format("its header is no JSON ({})", error.what()));
  }
  if (!json.is_object()) {
    refuse(path, fmt::format("its header is a JSON {}, expected an object", json.type_name()));
  }
  if (!duplicates.found().empty()) {
    refuse(path, fmt::format("the name '{}' appears twice in its header", duplicates.found()));
  }
  return json;
}

std::int64_t size_from(const std::string& path, const std::string& what, const Json& value) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMax) {
    refuse(path, fmt::format("{} is {}, expected a whole number >= 0", what, value.dump()));
  }
  return value.get<std::int64_t>();
}

DType dtype_from(const std::string& path, const std::string& name, const Json& value) {
  std::string known;
  for (const DTypeName& row : kNames) {
    if (value.is_string() && value.get_ref<const std::string&>() == row.name) return row.dtype;
    known += known.empty() ? row.name : std::string(", ") + row.name;
  }
  throw RuntimeError(
      fmt::format("{}: tensor '{}' has dtype {}, known are {}; convert the file to one of them",
                  path, name, value.dump(), known));
}

/// numel * element bytes; refuses products beyond int64.
std::int64_t checked_bytes(const std::string& path, const SafetensorsEntry& entry) {
  std::int64_t bytes = size_of(entry.dtype);
  for (const std::int64_t size : entry.shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) {
      refuse(path, fmt::format("tensor '{}' has shape {}, whose size overflows", entry.name,
                               to_string(entry.shape)));
    }
  }
  return bytes;
}

SafetensorsEntry entry_from(const std::string& path, const std::string& name, const Json& json) {
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!json.is_object() || !json.contains(key) || json.size() != 3) {
      refuse(path, fmt::format("tensor '{}' has the entry {}, expected exactly the keys dtype, "
                               "shape and data_offsets",
                               name, json.dump()));
    }
  }
  const Json& offsets = json["data_offsets"];
  if (!json["shape"].is_array() || !offsets.is_array() || offsets.size() != 2) {
    refuse(path, fmt::format("tensor '{}' has shape {} and data_offsets {}, expected a list of "
                             "sizes and two offsets",
                             name, json["shape"].dump(), offsets.dump()));
  }
  SafetensorsEntry entry;
  entry.name = name;
  entry.dtype = dtype_from(path, name, json["dtype"]);
  for (const Json& size : json["shape"]) {
    entry.shape.push_back(size_from(path, "a size of tensor '" + name + "'", size));
  }
  entry.begin = size_from(path, "an offset of tensor '" + name + "'", offsets[0]);
  entry.end = size_from(path, "an offset of tensor '" + name + "'", offsets[1]);
  const std::int64_t wanted = checked_bytes(path, entry);
  if (entry.end < entry.begin || entry.end - entry.begin != wanted) {
    refuse(path,
           fmt::format("tensor '{}' of shape {} and dtype {} wants {} bytes, its data_offsets "
                       "are [{}, {}]",
                       name, to_string(entry.shape), safetensors_dtype(entry.dtype), wanted,
                       entry.begin, entry.end));
  }
  return entry;
}

SafetensorsMetadata metadata_from(const std::string& path, const Json& json) {
  if (!json.is_object()) refuse(path, "__metadata__ is no object");
  SafetensorsMetadata metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) {
      refuse(path, fmt::format("__metadata__.{} is {}, expected a string", key, value.dump()));
    }
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

}  // namespace

std::string safetensors_dtype(DType dtype) {
  for (const DTypeName& row : kNames) {
    if (row.dtype == dtype) return row.name;
  }
  throw TypeError(
      fmt::format("safetensors: {} has no name in the format; store packed codes as uint8 and the "
                  "logical shape "
                  "in the metadata",
                  to_string(dtype)));
}

SafetensorsHeader parse_safetensors_header(const std::string& path, const std::string& text) {
  SafetensorsHeader header;
  const Json json = parse_json(path, text);
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadataKey) {
      header.metadata = metadata_from(path, value);
    } else {
      header.entries.push_back(entry_from(path, name, value));
    }
  }
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                     return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
                   });
  std::int64_t expected = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.begin != expected) {
      refuse(path,
             fmt::format("tensor '{}' begins at data byte {}, expected {}: tensors overlap or "
                         "leave a hole",
                         entry.name, entry.begin, expected));
    }
    expected = entry.end;
  }
  return header;
}

std::string make_safetensors_header(const std::vector<SafetensorsEntry>& entries,
                                    const SafetensorsMetadata& metadata) {
  Json json = Json::object();
  if (!metadata.empty()) json[kMetadataKey] = metadata;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.name == kMetadataKey || json.contains(entry.name)) {
      throw ValueError(fmt::format("safetensors: the tensor name '{}' is {}; rename the tensor",
                                   entry.name,
                                   entry.name == kMetadataKey ? "reserved" : "given twice"));
    }
    json[entry.name] = {{"dtype", safetensors_dtype(entry.dtype)},
                        {"shape", entry.shape},
                        {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const Json::exception& error) {
    throw ValueError(
        fmt::format("safetensors: a name or metadata is no UTF-8 text: {}", error.what()));
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace kitchen::train
