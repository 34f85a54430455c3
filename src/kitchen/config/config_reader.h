#pragma once

#include "kitchen/config/config_value.h"

#include <cstdint>
#include <string>
#include <vector>

/// @file  config_reader.h
/// @brief Typed reads of a ConfigDict. Every message names the key, the value with its type, file
/// and line,
///        and what was expected. A value is never converted but for an integer that is read as a
///        number.

namespace kitchen {

/// @throws KeyError if a key of `dict` is not in `known`; names it, its line and the nearest known
/// key.
/// @param subject What the dictionary describes, such as "recipe my_recipe".
void refuse_unknown_keys(const ConfigDict& dict, const std::vector<std::string>& known,
                         const std::string& subject);

/// Each read returns the value under `key`, or `fallback` if the key is absent.
/// @throws TypeError if the value has another type.
bool read_bool(const ConfigDict& dict, const std::string& key, bool fallback);
std::int64_t read_integer(const ConfigDict& dict, const std::string& key, std::int64_t fallback);
/// Integers and floats.
double read_number(const ConfigDict& dict, const std::string& key, double fallback);
std::string read_string(const ConfigDict& dict, const std::string& key,
                        const std::string& fallback);

/// The mapping under `key`, or null if the key is absent or its value is null.
/// @throws TypeError if it is anything else.
const ConfigDict* read_mapping(const ConfigDict& dict, const std::string& key);

}  // namespace kitchen
