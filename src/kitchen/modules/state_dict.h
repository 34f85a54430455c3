#pragma once

#include "kitchen/base/tensor.h"

#include <string>
#include <utility>
#include <vector>

namespace kitchen {

/// Name -> tensor in the order of definition.
class StateDict {
 public:
  using Item = std::pair<std::string, Tensor>;

  /// Adds, or replaces the tensor of an existing name.
  void set(const std::string& name, const Tensor& tensor);
  [[nodiscard]] bool contains(const std::string& name) const;
  /// @throws KeyError naming the name.
  [[nodiscard]] const Tensor& at(const std::string& name) const;
  [[nodiscard]] const std::vector<Item>& items() const { return items_; }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  void erase(const std::string& name);

 private:
  std::vector<Item> items_;
};

}  // namespace kitchen
