#include "kitchen/modules/megatron_module.h"

namespace kitchen {

void MegatronModule::set_is_first_microbatch() {
  if (!config->use_kitchen && !config->fp8 && !config->fp4) return;
  for (auto& [name, module] : named_modules()) {
    if (auto* layer = dynamic_cast<HasFirstMicrobatch*>(module.get())) layer->is_first_microbatch = true;
  }
}

}  // namespace kitchen
