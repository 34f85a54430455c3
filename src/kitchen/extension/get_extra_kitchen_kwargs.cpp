#include "kitchen/extension/get_extra_kitchen_kwargs.h"

#include "kitchen/base/context.h"
#include "kitchen/base/error.h"

namespace kitchen {

ExtraKitchenKwargs _get_extra_kitchen_kwargs(const TransformerConfig& config) {
  if (config.use_cpu_initialization) {
    throw ValueError(
        "use_cpu_initialization is set, but Kitchen layers do not support it; weights are drawn by "
        "global position on every device, so leave it off");
  }
  const Device device =
      config.init_model_with_meta_device ? Device::meta() : default_context()->device();
  return {config.params_dtype, device};
}

}  // namespace kitchen
