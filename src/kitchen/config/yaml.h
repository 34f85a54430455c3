#pragma once

#include "kitchen/config/config_value.h"

#include <string>

namespace kitchen {

/// Value of a plain (unquoted) scalar: null, bool, integer or float by the YAML 1.2 core schema
/// with yes and no added, else a string. `on`, `1_000` and `1:30` are strings, `010` is 10, `0x10`
/// is 16.
/// @throws ValueError for a number that does not fit 64 bits.
ConfigValue resolve_plain_scalar(const std::string& text);

/// Parses one YAML document. Each value remembers `source_name` and its line.
///
/// Quoted scalars are strings. Anchors and aliases work. Refused, with the line: syntax errors, a
/// second document, duplicate keys ("duplicate key fp8, lines 3 and 9"), merge keys, keys that are
/// no text, and tags other than !!str, !!int, !!float, !!bool, !!null, !!map and !!seq.
/// @param text        UTF-8.
/// @param source_name File name for messages.
/// @returns null for an empty document.
/// @throws ValueError.
ConfigValue parse_yaml(const std::string& text, const std::string& source_name);

/// Reads a file and parses it. @throws IOError naming the path if it cannot be read, ValueError as
/// above.
ConfigValue parse_yaml_file(const std::string& path);

/// As parse_yaml_file for a document that must be a mapping.
/// @param expected What the file should hold, for the message: "a recipe with configs and
/// matchers".
/// @throws TypeError if the document is empty or is no mapping.
ConfigDict parse_yaml_mapping_file(const std::string& path, const std::string& expected);

}  // namespace kitchen
