#include "kitchen/modules/linear.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/base/rng.h"
#include "kitchen/modules/init_methods.h"
#include "kitchen/parallel/process_group_collection.h"
#include "kitchen/parallel/process_group_collection.h"
#include "kitchen/recipes/predefined.h"

namespace kitchen::modules {

ContextPtr context_for(const Device& device) {
  ContextPtr context = default_context();
  if (context->device() == device) return context;
  if (device.type == DeviceType::meta) return make_meta_context(*context);
  throw ValueError("context_for: parameters were asked for on " + to_string(device) +
                   ", the default context lies on " + to_string(context->device()) +
                   "; call set_default_context first");
}

namespace {

/// Which part of the output gradient this rank holds: column mode splits its features over the group, and
/// each data-parallel rank has tokens of its own.
std::uint64_t gradient_part(const std::optional<std::string>& mode, const ProcessGroup& group) {
  const auto tokens = static_cast<std::uint64_t>(
      ProcessGroupCollection::use_mpu_process_groups()->dp_cp->rank());
  if (mode != "column") return tokens;
  return tokens * static_cast<std::uint64_t>(group.size()) + static_cast<std::uint64_t>(group.rank());
}

}  // namespace

void finish_quantization_step(const Module& model) {
  for (const auto& [path, module] : model.named_modules()) {
    auto* layer = dynamic_cast<HasQuantizationSteps*>(module.get());
    if (layer != nullptr) layer->finish_quantization_step();
  }
}

Linear::Linear() {
  register_parameter("weight", &weight);
  register_parameter("bias", &bias);
}

void Linear::init(const LinearOptions& options) {
  const std::int64_t parts = options.parallel_mode ? options.tp_size : 1;
  const bool column = options.parallel_mode == "column";
  const bool row = options.parallel_mode == "row";
  const std::int64_t local_out = column ? divide(options.out_features, parts) : options.out_features;
  const std::int64_t local_in = row ? divide(options.in_features, parts) : options.in_features;
  options_ = options;
  if (!options_.tp_group) options_.tp_group = ProcessGroup::self();
  if (!options_.qlinear_params) options_.qlinear_params = get_qlinear_params_from_qat_params(1);
  if (options_.logical_name.empty()) {
    options_.logical_name =
        "layer" + std::to_string(current_rank_state().next_creation_index());
  }
  out_features = local_out;
  in_features = local_in;
  use_bias = options.bias;
  tp_size = options.tp_size;
  parallel_mode = options.parallel_mode;
  ub_name = options.ub_name;
  try {
    allocate(context_for(options.device));
  } catch (...) {
    for (const auto& [name, parameter] : own_parameters()) *parameter = Parameter();
    throw;
  }
}

void Linear::allocate(const ContextPtr& context) {
  allocate_parameters(context);
  const QLinearParams& params = *options_.qlinear_params;
  const std::optional<std::string>& mode = options_.shard_mode ? options_.shard_mode : parallel_mode;
  const std::uint64_t seed = splitmix64(run_seed() ^ fnv1a64(options_.logical_name) ^
                                        gradient_part(mode, *sharding_group()));
  quantizers_ = std::make_shared<LinearQuantizers>(
      LinearQuantizers{{context, params.x_params, seed},
                       {context, params.w_params, seed},
                       {context, params.g_params, seed}});
  cache_ = std::make_shared<WeightCache>();
}

std::shared_ptr<ProcessGroup> Linear::sharding_group() const {
  return options_.shard_group ? options_.shard_group : options_.tp_group;
}

void Linear::allocate_parameters(const ContextPtr& context) {
  const std::optional<std::string>& mode = options_.shard_mode ? options_.shard_mode : parallel_mode;
  const bool column = mode == "column";
  const bool row = mode == "row";
  ParameterLayout layout;
  layout.logical_name = options_.logical_name + ".weight";
  layout.partition_dim = column ? 0 : row ? 1 : -1;
  layout.partition_rank = sharding_group()->rank();
  layout.partition_size = sharding_group()->size();
  layout.partition_stride = options_.partition_stride;
  if (options_.allocate_weight) {
    std::optional<RngTracker::Fork> fork;
    if (options_.rng_tracker != nullptr && options_.rng_tracker->is_initialized()) {
      fork.emplace(*options_.rng_tracker, options_.rng_tracker_name.value_or("model-parallel-rng"));
    }
    weight = make_parameter(context, {out_features, in_features}, options_.params_dtype, layout,
                            options_.init_method);
  }
  weight.tensor_model_parallel = layout.partition_dim >= 0;
  weight.partition_dim = layout.partition_dim;
  weight.partition_stride = options_.partition_stride;
  if (!use_bias) return;
  layout.logical_name = options_.logical_name + ".bias";
  layout.partition_dim = column ? 0 : -1;
  bias = make_parameter(context, {out_features}, options_.params_dtype, layout, nullptr);
  bias.tensor_model_parallel = column;
  bias.partition_dim = layout.partition_dim;
  bias.partition_stride = options_.partition_stride;
}

LinearSplit Linear::split_over_ranks() const {
  if (!parallel_mode || options_.tp_group->size() == 1) return {};
  return {parallel_mode == "column" ? LinearSplit::Kind::column : LinearSplit::Kind::row,
          options_.sequence_parallel, options_.tp_group};
}

LinearOutput Linear::forward(const Tensor& x, std::optional<bool> is_first_microbatch) {
  return forward_with(x, weight, is_first_microbatch);
}

LinearCall Linear::begin_forward(std::optional<bool> is_first_microbatch) {
  forward_was_run_ = true;
  LinearCall call;
  call.module = options_.logical_name;
  call.params = options_.qlinear_params;
  call.quantizers = quantizers_;
  call.fuse_wgrad_accumulation = options_.fuse_wgrad_accumulation;
  call.split = split_over_ranks();
  if (is_first_microbatch) {
    call.cache = cache_;
    call.refresh_cache = *is_first_microbatch;
  }
  return call;
}

LinearOutput Linear::forward_with(const Tensor& x, const Tensor& used_weight,
                                  std::optional<bool> is_first_microbatch) {
  const LinearCall call = begin_forward(is_first_microbatch);
  const bool returns_bias = options_.return_bias && use_bias;
  const Tensor added = use_bias && !returns_bias ? static_cast<const Tensor&>(bias) : Tensor();
  Tensor y = LinearFunction::apply(x, used_weight, added, call);
  if (returns_bias) return {y, bias};
  return {y, std::nullopt};
}

void Linear::set_tensor_parallel_group(std::shared_ptr<ProcessGroup> group) {
  if (forward_was_run_) {
    throw ValueError(class_name() + ": set_tensor_parallel_group after the first forward");
  }
  if (!group || group->size() != tp_size) {
    throw ValueError(class_name() + ": set_tensor_parallel_group got a group of " +
                     std::to_string(group ? group->size() : 0) + " ranks, the layer was built for " +
                     std::to_string(tp_size));
  }
  options_.tp_group = std::move(group);
}

void Linear::reset_parameters() {
  std::vector<Parameter> former;
  for (const auto& [name, parameter] : own_parameters()) former.push_back(*parameter);
  allocate(default_context());
  for (std::size_t i = 0; i < former.size(); ++i) {
    if (!former[i].defined()) continue;
    // Other holders of the handle (optimizer, tied weights) must see the new storage.
    Parameter& parameter = *own_parameters()[i].second;
    former[i].set_data(parameter);
    parameter = former[i];
  }
}

void Linear::finish_quantization_step() {
  quantizers_->finish_step(*ProcessGroupCollection::use_mpu_process_groups()->tp_dp_cp);
}

Tensor Linear::get_extra_state() const {
  const auto count = static_cast<std::int64_t>(quantizers_->encoded_bytes());
  const ContextPtr& context = weight.context();
  if (count == 0 || context->is_meta()) return Tensor::empty(context, {count}, DType::uint8);
  return Tensor::from_vector(context, {count}, quantizers_->encode());
}

void Linear::set_extra_state(const Tensor& state) {
  if (!state.defined() || state.numel() == 0) return;
  if (!quantizers_->has_state()) {
    logger().info(class_name() + ": extra state of " + std::to_string(state.numel()) +
                  " bytes is ignored; the quantizers of this recipe keep no state");
    return;
  }
  const std::string problem = extra_state_mismatch(state);
  if (!problem.empty()) {
    throw RuntimeError(options_.logical_name + ": Unsupported checkpoint format: " + problem);
  }
  quantizers_->decode(state.to_vector<std::uint8_t>());
}

std::string Linear::extra_state_mismatch(const Tensor& value) const {
  if (!quantizers_->has_state() || !value.defined() || value.numel() == 0) return "";
  if (value.dtype() != DType::uint8) return "a tensor of " + to_string(value.dtype()) + ", not uint8";
  return quantizers_->mismatch(value.to_vector<std::uint8_t>());
}

std::vector<StateDict::Item> Linear::extra_state() const {
  if (!weight.defined()) return {};
  return {{"_extra_state", get_extra_state()}};
}

void Linear::load_extra_state(const std::string& /*name*/, const Tensor& value) {
  set_extra_state(value);
}

}  // namespace kitchen::modules
