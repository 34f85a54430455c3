#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

/// @file  rooms.h
/// @brief The table of rooms: which folder of src/kitchen may include which.
///
/// The picture of this table, and why it is so, is docs/explanation/layout.md.

namespace kitchen::tools {

/// The arrows as drawn: a room and the rooms that it may include directly. A room may also include
/// everything reachable along arrows. Rooms that are not a key do not exist.
inline const std::map<std::string, std::vector<std::string>>& arrows() {
  static const std::map<std::string, std::vector<std::string>> table = {
      {"base", {}},
      {"formats", {"base"}},
      {"ops", {"formats", "base"}},
      {"reference", {"ops", "formats", "base"}},
      {"cuda", {"ops", "formats", "base"}},
      {"recipes", {"formats"}},
      {"config", {"recipes"}},
      {"parallel", {"formats"}},
      {"autograd", {"ops"}},
      {"modules", {"autograd", "parallel", "config"}},
      {"extension", {"modules"}},
      {"models", {"modules"}},
      {"report", {"base"}},
      {"train", {"models", "extension", "report"}},
      {"analysis", {"train"}},
      // Only a declaration: the build writes the body, which names the device libraries.
      {"backends", {"base"}},
      // Composition roots join a backend to the layers, so they may name both sides.
      {"app", {"analysis", "reference", "backends"}},
      // src/kitchen/kitchen.h, the one header that gathers the public ones.
      {"kitchen.h", {"train", "reference"}},
  };
  return table;
}

/// Every room that `room` may include: itself and what is reachable along arrows.
/// @throws std::out_of_range if `room` is not in the table.
inline std::set<std::string> reachable_rooms(const std::string& room) {
  std::set<std::string> reached = {room};
  std::vector<std::string> open = {room};
  while (!open.empty()) {
    const std::string current = open.back();
    open.pop_back();
    for (const std::string& next : arrows().at(current)) {
      if (reached.insert(next).second) open.push_back(next);
    }
  }
  return reached;
}

}  // namespace kitchen::tools
