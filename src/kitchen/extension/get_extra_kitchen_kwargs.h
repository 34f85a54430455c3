#pragma once

#include "kitchen/base/device.h"
#include "kitchen/base/dtype.h"
#include "kitchen/config/transformer_config.h"

namespace kitchen {

/// What every Kitchen layer adds to the arguments of its base.
struct ExtraKitchenKwargs {
  DType params_dtype;
  Device device;
};

/// Dtype and device of a layer's parameters. The device is that of the rank's default context, or
/// `meta` when `init_model_with_meta_device` is set: then parameters have a shape but no storage
/// until they are reset.
/// @throws ValueError if `use_cpu_initialization` is set, which is checked first. It asks for
/// master weights
///         that are made on the host and sliced; a CPU default context has nothing to do with it.
ExtraKitchenKwargs _get_extra_kitchen_kwargs(const TransformerConfig& config);

}  // namespace kitchen
