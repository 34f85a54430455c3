#include "kitchen/modules/mlp_parts.h"

#include "kitchen/autograd/math_functions.h"
#include "kitchen/autograd/view_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/modules/init_methods.h"

namespace kitchen::modules {

namespace {

ops::Activation activation_of(ActivationFunc activation) {
  switch (activation) {
    case ActivationFunc::gelu:
      return ops::Activation::gelu;
    case ActivationFunc::gelu_tanh:
      return ops::Activation::gelu_tanh;
    case ActivationFunc::silu:
      return ops::Activation::silu;
    case ActivationFunc::relu:
      return ops::Activation::relu;
  }
  throw ValueError("activation_options: unknown activation");
}

/// scale [...] repeated along the last dimension of `x` [..., n].
Tensor along_last(const Tensor& scale, const Tensor& x) {
  Shape column = x.shape();
  column.back() = 1;
  return autograd::repeat_interleave(autograd::reshape(scale, column), -1, x.dim(-1));
}

/// The two shards of `whole`: gate rows, then up rows, each split over the ranks.
std::vector<ShardedTensor> gate_and_up(const ShardedTensor& whole, std::int64_t tp_rank,
                                       std::int64_t tp_size) {
  const std::int64_t half = whole.data.dim(0) / 2;
  const int prepended = whole.prepend_axis_num;
  std::vector<ShardedTensor> shards;
  for (std::int64_t part = 0; part < 2; ++part) {
    ShardedOffsets offsets;
    for (int axis = 0; axis < prepended; ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      offsets.emplace_back(axis, whole.global_offset[i], whole.global_shape[i]);
    }
    offsets.emplace_back(prepended, tp_rank + part * tp_size, 2 * tp_size);
    shards.push_back(
        ShardedTensor::from_rank_offsets(whole.key, whole.data.detach().slice(0, part * half, half),
                                         offsets, whole.replica_id, prepended));
  }
  return shards;
}

}  // namespace

ops::ActivationOptions activation_options(const std::string& class_name,
                                          const TransformerConfig& config) {
  if (config.activation_func_clamp_value) {
    throw NotImplementedError(class_name + ": activation_func_clamp_value is not supported");
  }
  ops::ActivationOptions options;
  options.activation = activation_of(config.activation_func);
  options.gated = config.gated_linear_unit;
  options.linear_offset = static_cast<float>(config.glu_linear_offset);
  return options;
}

InitMethod fc1_init(const TransformerConfig& config) {
  return config.init_method ? config.init_method : init_method_normal(config.init_method_std);
}

InitMethod fc2_init(const TransformerConfig& config) {
  return config.output_layer_init_method ? config.output_layer_init_method
                                         : init_method_normal(config.output_layer_init_std());
}

Tensor scale_rows(const Tensor& x, const Tensor& scale) {
  return autograd::multiply(x, along_last(scale, x));
}

Tensor add_scaled_bias(const Tensor& x, const Tensor& bias, const Tensor& scale) {
  const std::int64_t rows = x.numel() / x.dim(-1);
  const Tensor row = autograd::reshape(bias, {1, -1});
  // No rows: an empty part of the bias, which then has a gradient, of zeros.
  const Tensor repeated =
      rows > 0 ? autograd::repeat_interleave(row, 0, rows) : autograd::split(row, 0, {0, 1})[0];
  return autograd::add(x, scale_rows(autograd::reshape(repeated, x.shape()), scale));
}

void shard_gate_and_up(ShardedStateDict& dict, const std::string& name,
                       const ProcessGroup& tp_group) {
  if (!dict.contains(name)) return;
  ShardedValue& value = dict.at(name);
  const auto whole = std::get<ShardedTensor>(value);
  ShardedTensorFactory factory{whole.key, whole.data, whole.replica_id, nullptr};
  factory.build_from = [whole, rank = tp_group.rank(),
                        size = tp_group.size()](const ShardedTensorFactory& self) {
    ShardedTensor current = whole;
    current.key = self.key;
    current.replica_id = self.replica_id;
    return gate_and_up(current, rank, size);
  };
  value = factory;
}

}  // namespace kitchen::modules
