#pragma once

#include "kitchen/modules/build_args.h"
#include "kitchen/modules/module.h"

#include <any>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <typeindex>
#include <vector>

namespace kitchen {

/// What a class says of itself so that it can be built from a spec: `static ModuleInfo module_info();`.
struct ModuleInfo {
  std::string name;
  std::vector<std::string> arguments;  ///< positional names in order, then the keyword-only ones
  std::function<std::shared_ptr<Module>(const BuildArgs&)> build;
};

/// A class as a value: C++ has none of its own, specs need one.
class ModuleType {
 public:
  ModuleType(std::type_index type, const ModuleInfo* info) : type_(type), info_(info) {}

  [[nodiscard]] const std::string& name() const { return info_->name; }
  [[nodiscard]] std::type_index type() const { return type_; }
  [[nodiscard]] const ModuleInfo& info() const { return *info_; }

  friend bool operator==(const ModuleType& a, const ModuleType& b) { return a.type_ == b.type_; }
  friend bool operator!=(const ModuleType& a, const ModuleType& b) { return !(a == b); }

 private:
  std::type_index type_;
  const ModuleInfo* info_;
};

template <class T>
ModuleType module_type() {
  static const ModuleInfo info = T::module_info();
  return {std::type_index(typeid(T)), &info};
}

using ParamMap = std::map<std::string, std::any>;

/// A class with fixed arguments and the specs of its parts.
struct ModuleSpec {
  ModuleType module;
  ParamMap params;
  std::any submodules;  ///< passed as keyword `submodules` if it holds a value
  ParamMap metainfo;

  ModuleSpec(ModuleType type)  // NOLINT(google-explicit-constructor): a bare type is a spec
      : module(type) {}
  ModuleSpec(ModuleType type, ParamMap fixed, std::any parts = {})
      : module(type), params(std::move(fixed)), submodules(std::move(parts)) {}
};

/// Builds what `spec` describes with the call's arguments.
/// @throws TypeError for a keyword that is in both, unknown, or of the wrong type. Any error of the constructor
///         is rethrown with the same type and the suffix " when instantiating <ClassName>".
std::shared_ptr<Module> build_module(const ModuleSpec& spec, BuildArgs args);

/// As above, as a T. @throws TypeError if the class is no T.
template <class T>
std::shared_ptr<T> build_module_as(const ModuleSpec& spec, BuildArgs args) {
  auto module = std::dynamic_pointer_cast<T>(build_module(spec, std::move(args)));
  if (!module) {
    throw TypeError("build_module: class " + spec.module.name() + " has not the wanted interface");
  }
  return module;
}

}  // namespace kitchen
