#include "kitchen/base/backend.h"

#include "kitchen/base/error.h"

namespace kitchen {

Backend::AnyFn Backend::find(std::type_index op, const char* op_name,
                             std::string_view variant) const {
  const auto entry = table_.find(op);
  if (entry == table_.end()) {
    throw NotImplementedError(std::string(op_name) + ": backend '" + name_ +
                              "' has no kernel for it");
  }
  if (variant.empty()) return entry->second.front().second;
  std::string known;
  for (const auto& [name, fn] : entry->second) {
    if (name == variant) return fn;
    known += known.empty() ? name : ", " + name;
  }
  throw NotImplementedError(std::string(op_name) + ": backend '" + name_ + "' has no variant '" +
                            std::string(variant) + "'; it has " + known);
}

std::vector<std::string> Backend::variants_of(std::type_index op) const {
  std::vector<std::string> names;
  const auto entry = table_.find(op);
  if (entry == table_.end()) return names;
  for (const auto& [name, fn] : entry->second) names.push_back(name);
  return names;
}

}  // namespace kitchen
