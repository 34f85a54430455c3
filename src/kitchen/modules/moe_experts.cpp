#include "kitchen/modules/moe_experts.h"

#include "kitchen/base/error.h"

namespace kitchen {

namespace {

ModuleInfo unavailable(const char* name) {
  const std::string text = name;
  return {name,
          {"num_local_experts", "config", "submodules", "pg_collection"},
          [text](const BuildArgs&) -> std::shared_ptr<Module> {
            throw NotImplementedError(text + ": mixture-of-experts layers are not available in this "
                                             "version; leave num_moe_experts unset");
          }};
}

}  // namespace

ModuleInfo SequentialMLP::module_info() { return unavailable("SequentialMLP"); }
ModuleInfo TEGroupedMLP::module_info() { return unavailable("TEGroupedMLP"); }
ModuleInfo GroupedMLP::module_info() { return unavailable("GroupedMLP"); }

}  // namespace kitchen
