#pragma once

#include <map>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

namespace kitchen {

/// Table of the kernels that one device library offers.
///
/// An op declares a kernel type `K` with a function pointer type `K::Fn` and a name `K::kName`; a device
/// library adds its functions under a variant name ("exact", "openblas", "wgmma"). What is not in
/// the table is an error that names op and backend, never a silent fallback.
class Backend {
 public:
  explicit Backend(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] const std::string& name() const { return name_; }

  /// Registers `fn`. The first variant of an op is its default.
  template <class K>
  void add(std::string variant, typename K::Fn fn) {
    table_[std::type_index(typeid(K))].emplace_back(std::move(variant),
                                                    reinterpret_cast<AnyFn>(fn));
  }

  /// The kernel of `variant`, or the default one if `variant` is empty.
  /// @throws NotImplementedError naming op, variant and backend.
  template <class K>
  [[nodiscard]] typename K::Fn get(std::string_view variant = {}) const {
    return reinterpret_cast<typename K::Fn>(find(std::type_index(typeid(K)), K::kName, variant));
  }

  /// Names of the registered variants, the default first; empty if there is no kernel.
  template <class K>
  [[nodiscard]] std::vector<std::string> variants() const {
    return variants_of(std::type_index(typeid(K)));
  }

 private:
  using AnyFn = void (*)();

  [[nodiscard]] AnyFn find(std::type_index op, const char* op_name, std::string_view variant) const;
  [[nodiscard]] std::vector<std::string> variants_of(std::type_index op) const;

  std::string name_;
  std::map<std::type_index, std::vector<std::pair<std::string, AnyFn>>> table_;
};

}  // namespace kitchen
