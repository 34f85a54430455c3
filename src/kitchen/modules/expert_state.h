#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kitchen::modules {

/// The extra state of each expert of a grouped layer; an entry may be empty.
using ExpertStates = std::vector<std::vector<std::uint8_t>>;

/// One tagged form of all: tag and version, the number of experts, and for each the number of its
/// bytes and the bytes; numbers are 64-bit little-endian.
std::vector<std::uint8_t> encode_expert_states(const ExpertStates& states);

/// `bytes` start as encode_expert_states starts.
bool are_expert_states(const std::vector<std::uint8_t>& bytes);

/// Inverts encode_expert_states; no bytes are no experts.
/// @throws RuntimeError "Unsupported checkpoint format" naming what was found.
ExpertStates decode_expert_states(const std::vector<std::uint8_t>& bytes);

/// The path by which parameters and random streams of one expert are named, equal for grouped and
/// sequential experts and on every rank: "mlp.experts.linear_fc1" ->
/// "mlp.experts.local_experts.<index>.linear_fc1".
std::string expert_path(const std::string& grouped_path, std::int64_t global_index);

/// The path of a layer of a sequential expert with the expert's global number for its local one:
/// "experts.local_experts.1.linear_fc1" -> "experts.local_experts.3.linear_fc1" if the rank's first
/// expert is number 2. Other paths stay as they are.
std::string global_expert_path(const std::string& path, std::int64_t first_expert);

}  // namespace kitchen::modules
