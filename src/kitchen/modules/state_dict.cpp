#include "kitchen/modules/state_dict.h"

#include "kitchen/base/error.h"

#include <algorithm>

namespace kitchen {

void StateDict::set(const std::string& name, const Tensor& tensor) {
  for (Item& item : items_) {
    if (item.first == name) {
      item.second = tensor;
      return;
    }
  }
  items_.emplace_back(name, tensor);
}

bool StateDict::contains(const std::string& name) const {
  return std::any_of(items_.begin(), items_.end(),
                     [&](const Item& item) { return item.first == name; });
}

const Tensor& StateDict::at(const std::string& name) const {
  for (const Item& item : items_) {
    if (item.first == name) return item.second;
  }
  throw KeyError("StateDict: no entry '" + name + "'");
}

void StateDict::erase(const std::string& name) {
  items_.erase(std::remove_if(items_.begin(), items_.end(),
                              [&](const Item& item) { return item.first == name; }),
               items_.end());
}

}  // namespace kitchen
