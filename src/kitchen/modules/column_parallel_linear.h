#pragma once

#include "kitchen/config/transformer_config.h"
#include "kitchen/modules/forward_interfaces.h"
#include "kitchen/modules/linear.h"
#include "kitchen/modules/module_spec.h"

namespace kitchen {

/// Megatron's local column-parallel layer: unquantized, built at once, weight [out/t, in].
class ColumnParallelLinear : public modules::Linear, public modules::ForwardLinear {
 public:
  /// Keyword arguments, with Megatron's defaults.
  struct Args {
    std::shared_ptr<ModelParallelConfig> config;
    InitMethod init_method;
    bool bias = true;
    bool gather_output = false;  ///< return [..., out] instead of this rank's [..., out/t]
    bool skip_bias_add = false;
    bool is_expert = false;
    bool skip_weight_param_allocation = false;  ///< the weight comes with each forward (tied embeddings)
    std::int64_t stride = 1;
    std::shared_ptr<ProcessGroup> tp_group;
  };

  ColumnParallelLinear(std::int64_t input_size, std::int64_t output_size, const Args& args);

  std::pair<Tensor, std::optional<Tensor>> forward(const Tensor& x) override;
  /// With a weight of another module, [out/t, in]; this layer then needs none of its own.
  std::pair<Tensor, std::optional<Tensor>> forward(const Tensor& x, const Tensor& shared_weight);

  [[nodiscard]] std::string class_name() const override { return "ColumnParallelLinear"; }
  static ModuleInfo module_info();

 private:
  /// `output` with its columns of all ranks, if the layer gathers them.
  [[nodiscard]] modules::LinearOutput whole(modules::LinearOutput output) const;

  bool allocates_weight_;
  bool gathers_output_;
};

}  // namespace kitchen
