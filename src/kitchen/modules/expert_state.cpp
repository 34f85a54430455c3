#include "kitchen/modules/expert_state.h"

#include "kitchen/base/error.h"

#include <algorithm>
#include <array>

namespace kitchen::modules {

namespace {

/// "KQG" and the version of the encoded form.
constexpr std::array<std::uint8_t, 4> kTag{'K', 'Q', 'G', 1};

constexpr const char* kExpertList = "local_experts.";

void append_number(std::vector<std::uint8_t>& bytes, std::uint64_t number) {
  for (unsigned i = 0; i < sizeof number; ++i) {
    bytes.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
  }
}

/// Reads an encoded form from its start; asking for more than is left is an error.
class StateReader {
 public:
  explicit StateReader(const std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}

  [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }

  std::vector<std::uint8_t> take(std::uint64_t count) {
    if (count > left()) {
      throw RuntimeError("Unsupported checkpoint format: the extra state of a grouped layer has " +
                         std::to_string(bytes_.size()) + " bytes and ends " +
                         std::to_string(count - left()) + " bytes early");
    }
    const auto start = bytes_.begin() + static_cast<std::ptrdiff_t>(at_);
    at_ += static_cast<std::size_t>(count);
    return {start, start + static_cast<std::ptrdiff_t>(count)};
  }

  std::uint64_t take_number() {
    std::uint64_t number = 0;
    const std::vector<std::uint8_t> bytes = take(sizeof number);
    for (unsigned i = 0; i < sizeof number; ++i) {
      number |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
    }
    return number;
  }

 private:
  const std::vector<std::uint8_t>& bytes_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::uint8_t> encode_expert_states(const ExpertStates& states) {
  std::vector<std::uint8_t> bytes(kTag.begin(), kTag.end());
  append_number(bytes, states.size());
  for (const std::vector<std::uint8_t>& state : states) {
    append_number(bytes, state.size());
    bytes.insert(bytes.end(), state.begin(), state.end());
  }
  return bytes;
}

bool are_expert_states(const std::vector<std::uint8_t>& bytes) {
  return bytes.size() >= kTag.size() && std::equal(kTag.begin(), kTag.end(), bytes.begin());
}

ExpertStates decode_expert_states(const std::vector<std::uint8_t>& bytes) {
  if (bytes.empty()) return {};
  if (!are_expert_states(bytes)) {
    throw RuntimeError("Unsupported checkpoint format: " + std::to_string(bytes.size()) +
                       " bytes that are no extra state of a grouped layer, version " +
                       std::to_string(kTag[3]));
  }
  StateReader reader(bytes);
  (void)reader.take(kTag.size());
  ExpertStates states;
  for (std::uint64_t count = reader.take_number(); count > 0; --count) {
    states.push_back(reader.take(reader.take_number()));
  }
  if (reader.left() == 0) return states;
  throw RuntimeError("Unsupported checkpoint format: " + std::to_string(reader.left()) +
                     " bytes follow the extra state of " + std::to_string(states.size()) +
                     " experts");
}

std::string expert_path(const std::string& grouped_path, std::int64_t global_index) {
  const std::size_t dot = grouped_path.rfind('.');
  const std::size_t leaf = dot == std::string::npos ? 0 : dot + 1;
  return grouped_path.substr(0, leaf) + kExpertList + std::to_string(global_index) + "." +
         grouped_path.substr(leaf);
}

std::string global_expert_path(const std::string& path, std::int64_t first_expert) {
  const std::size_t list = path.rfind(kExpertList);
  if (list == std::string::npos) return path;
  const std::size_t start = list + std::string(kExpertList).size();
  const std::size_t end = path.find_first_not_of("0123456789", start);
  if (end == start || end == std::string::npos) return path;
  const std::int64_t local = std::stoll(path.substr(start, end - start));
  return path.substr(0, start) + std::to_string(first_expert + local) + path.substr(end);
}

}  // namespace kitchen::modules
