#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kitchen {

/// Which layer asks for its quantization.
struct MatchContext {
  std::string module_path;  ///< "decoder.layers.3.mlp.linear_fc1"
  /// Zero-based index in the layer list of this pipeline stage, read from the path; not the
  /// one-based, global `layer_number` of a module. Built-in matchers do not read it.
  std::optional<std::int64_t> layer_number;
};

inline bool operator==(const MatchContext& a, const MatchContext& b) {
  return a.module_path == b.module_path && a.layer_number == b.layer_number;
}
inline bool operator!=(const MatchContext& a, const MatchContext& b) {
  return !(a == b);
}

/// `MatchContext(module_path="...", layer_number=3)`.
std::string to_string(const MatchContext& context);

}  // namespace kitchen
