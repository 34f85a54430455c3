#include "kitchen/modules/module_spec.h"

#include <algorithm>

namespace kitchen {

void BuildArgs::bind(const std::string& class_name, const std::vector<std::string>& names) {
  class_name_ = class_name;
  if (positional_.size() > names.size()) {
    throw TypeError(class_name + ": takes " + std::to_string(names.size()) +
                    " arguments, but " + std::to_string(positional_.size()) + " were given");
  }
  for (std::size_t i = 0; i < positional_.size(); ++i) {
    if (has(names[i])) {
      throw TypeError(class_name + ": got multiple values for argument '" + names[i] + "'");
    }
    set(names[i], positional_[i]);
  }
  positional_.clear();
  for (const auto& [keyword, value] : keywords_) {
    if (std::find(names.begin(), names.end(), keyword) == names.end()) {
      throw TypeError(class_name + ": unexpected keyword argument '" + keyword + "'");
    }
  }
}

namespace {

void merge(BuildArgs& args, const std::string& keyword, const std::any& value) {
  if (args.has(keyword)) {
    throw TypeError("build_module: keyword argument '" + keyword +
                    "' is given by the spec and by the call");
  }
  args.set(keyword, value);
}

}  // namespace

std::shared_ptr<Module> build_module(const ModuleSpec& spec, BuildArgs args) {
  try {
    for (const auto& [keyword, value] : spec.params) merge(args, keyword, value);
    if (spec.submodules.has_value()) merge(args, "submodules", spec.submodules);
    args.bind(spec.module.name(), spec.module.info().arguments);
    return spec.module.info().build(args);
  } catch (const Error& error) {
    error.rethrow_with_suffix(" when instantiating " + spec.module.name());
    throw;  // not reached: tells the compiler so
  }
}

}  // namespace kitchen
