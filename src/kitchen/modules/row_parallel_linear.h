#pragma once

#include "kitchen/config/transformer_config.h"
#include "kitchen/modules/forward_interfaces.h"
#include "kitchen/modules/linear.h"
#include "kitchen/modules/module_spec.h"

namespace kitchen {

/// Megatron's local row-parallel layer: unquantized, built at once, weight [out, in/t].
class RowParallelLinear : public modules::Linear, public modules::ForwardLinear {
 public:
  struct Args {
    std::shared_ptr<ModelParallelConfig> config;
    InitMethod init_method;
    bool bias = true;
    bool input_is_parallel = true;  ///< x is [..., in/t]; else this rank takes its part of [..., in]
    bool skip_bias_add = false;
    bool is_expert = false;
    std::shared_ptr<ProcessGroup> tp_group;
  };

  /// @throws ValueError for a whole input together with sequence parallelism.
  RowParallelLinear(std::int64_t input_size, std::int64_t output_size, const Args& args);

  std::pair<Tensor, std::optional<Tensor>> forward(const Tensor& x) override;

  [[nodiscard]] std::string class_name() const override { return "RowParallelLinear"; }
  static ModuleInfo module_info();

 private:
  bool input_is_parallel_;
};

}  // namespace kitchen
