#pragma once

#include "kitchen/base/dtype.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace kitchen {

/// How a model is split over ranks, and in which precision it is held. Megatron's names and
/// defaults.
struct ModelParallelConfig {
  virtual ~ModelParallelConfig() = default;

  std::int64_t tensor_model_parallel_size = 1;
  std::int64_t pipeline_model_parallel_size = 1;
  std::optional<std::int64_t> virtual_pipeline_model_parallel_size;
  bool sequence_parallel = false;
  std::int64_t context_parallel_size = 1;
  std::int64_t expert_model_parallel_size = 1;
  std::optional<std::int64_t> expert_tensor_parallel_size;  ///< default: tensor_model_parallel_size

  bool perform_initialization = true;
  bool use_cpu_initialization = false;
  bool fp16 = false;
  bool bf16 = false;
  DType params_dtype = DType::float32;
  bool deterministic_mode = false;

  bool gradient_accumulation_fusion = false;
  bool tp_comm_overlap = false;
  bool delay_wgrad_compute = false;

  /// Fills defaults that depend on other fields. Idempotent.
  virtual void finalize();

  /// finalize(), then checks.
  /// @throws ValueError if a size is below 1, if sequence parallelism is on with one TP rank, or if
  /// fp16 and
  ///         bf16 are both set. Warns of expert parallelism with TP but without sequence
  ///         parallelism.
  virtual void validate();
};

/// A validated, shared copy: `make_config(TransformerConfig{...})`.
template <class Config>
std::shared_ptr<Config> make_config(Config config) {
  config.validate();
  return std::make_shared<Config>(std::move(config));
}

}  // namespace kitchen
