#pragma once

#include "kitchen/train/safetensors.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kitchen::train {

/// The JSON part of a safetensors file.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;
  SafetensorsMetadata metadata;
};

/// Parses and checks everything that the text alone can show: JSON, names, dtypes, shapes, and that
/// the byte ranges follow each other without hole or overlap from 0 on. Entries come sorted by
/// `begin`.
/// @param path For messages.
/// @throws RuntimeError naming path and tensor, what was found and what is expected.
SafetensorsHeader parse_safetensors_header(const std::string& path, const std::string& text);

/// Places `tensors` behind each other and gives the JSON text, padded with spaces to a multiple
/// of 8.
std::string make_safetensors_header(const std::vector<SafetensorsEntry>& entries,
                                    const SafetensorsMetadata& metadata);

}  // namespace kitchen::train
