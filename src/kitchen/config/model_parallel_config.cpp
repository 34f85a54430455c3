#include "kitchen/config/model_parallel_config.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"

#include <fmt/format.h>

namespace kitchen {

namespace {

void require_positive(const char* name, std::int64_t value) {
  if (value < 1) throw ValueError(fmt::format("{} is {}, expected at least 1", name, value));
}

}  // namespace

void ModelParallelConfig::finalize() {
  if (!expert_tensor_parallel_size) expert_tensor_parallel_size = tensor_model_parallel_size;
}

void ModelParallelConfig::validate() {
  require_positive("tensor_model_parallel_size", tensor_model_parallel_size);
  require_positive("pipeline_model_parallel_size", pipeline_model_parallel_size);
  require_positive("context_parallel_size", context_parallel_size);
  require_positive("expert_model_parallel_size", expert_model_parallel_size);
  if (virtual_pipeline_model_parallel_size) {
    require_positive("virtual_pipeline_model_parallel_size", *virtual_pipeline_model_parallel_size);
  }
  finalize();
  require_positive("expert_tensor_parallel_size", *expert_tensor_parallel_size);
  if (sequence_parallel && tensor_model_parallel_size <= 1) {
    throw ValueError(fmt::format(
        "sequence_parallel is on, but tensor_model_parallel_size is {}; it needs at least 2",
        tensor_model_parallel_size));
  }
  if (fp16 && bf16) {
    throw ValueError("fp16 and bf16 are both set; choose one precision");
  }
  if (expert_model_parallel_size > 1 && tensor_model_parallel_size > 1 && !sequence_parallel) {
    logger().warning(fmt::format(
        "expert_model_parallel_size {} with tensor_model_parallel_size {} needs sequence_parallel: "
        "a mixture-of-experts layer refuses to train without it",
        expert_model_parallel_size, tensor_model_parallel_size));
  }
}

}  // namespace kitchen
