#pragma once

#include "kitchen/base/context.h"
#include "kitchen/train/train_settings.h"

#include <cstdint>
#include <string>

namespace kitchen::train {

/// Bytes that a training step will need, by what holds them.
struct MemoryPlan {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;   ///< float32 main_grad
  std::int64_t optimizer = 0;   ///< main weights and moments
  std::int64_t peak = 0;        ///< of the whole step, activations and workspaces included

  [[nodiscard]] std::int64_t activations() const {
    return peak - parameters - gradients - optimizer;
  }
};

/// Runs one training step on the meta device, where only allocations happen, and reads the allocator. Every
/// allocation of the real step is in it, since it is the same code.
/// @param device_context a context of the device that is planned for.
MemoryPlan plan_memory(const TrainSettings& settings, const ContextPtr& device_context);

/// "planned 41.2 MiB: parameters 1.6, gradients 3.2, optimizer 9.7, activations 26.7".
std::string to_string(const MemoryPlan& plan);

/// "41.2 MiB".
std::string format_mebibytes(std::int64_t bytes);

}  // namespace kitchen::train
