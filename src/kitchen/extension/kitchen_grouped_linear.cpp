#include "kitchen/extension/kitchen_grouped_linear.h"

#include "kitchen/base/error.h"
#include "kitchen/extension/kitchen_layer_support.h"
#include "kitchen/modules/local_linear_options.h"

#include <utility>

namespace kitchen {

namespace {

constexpr const char* kClass = "KitchenGroupedLinear";

/// The group that `pick` names in `given`, else this rank's default one.
std::shared_ptr<ProcessGroup> group_of(
    const std::shared_ptr<const ProcessGroupCollection>& given,
    std::shared_ptr<ProcessGroup> ProcessGroupCollection::*pick) {
  if (given && (*given).*pick) return (*given).*pick;
  return (*ProcessGroupCollection::use_mpu_process_groups()).*pick;
}

}  // namespace

struct KitchenGroupedLinear::Stash {
  std::int64_t input_size;
  std::int64_t output_size;
  std::optional<std::string> parallel_mode;
  InitMethod init_method;
  bool bias;
  GroupedLinearArgs args;
};

KitchenGroupedLinear::KitchenGroupedLinear(std::int64_t local_experts, std::int64_t input_size,
                                           std::int64_t output_size, GroupedLinearArgs args)
    : GroupedLinear(local_experts), groups_(args.pg_collection) {
  Stash stash{input_size, output_size, args.parallel_mode.get(kClass, "parallel_mode"),
              nullptr,    false,       args};
  config = extension::require_config(kClass, args.config.get(kClass, "config"));
  stash.init_method =
      extension::effective_init_method(*config, args.init_method.get(kClass, "init_method"));
  stash.bias = args.bias.get(kClass, "bias");
  const bool skip_bias_add = args.skip_bias_add.get(kClass, "skip_bias_add");
  const std::optional<std::string>& mode = stash.parallel_mode;
  if (mode && *mode != "column" && *mode != "row") {
    throw ValueError(std::string(kClass) + ": parallel_mode is '" + *mode +
                     "', expected 'column', 'row' or none");
  }
  extension::refuse_delayed_wgrad(kClass, *config);
  kitchen_return_bias = skip_bias_add && stash.bias;
  disable_parameter_transpose_cache =
      extension::as_transformer_config(*config).disable_parameter_transpose_cache;
  stash_ = std::make_shared<const Stash>(std::move(stash));
}

modules::LinearOptions KitchenGroupedLinear::resolve(const KitchenQuantizationParams& quant_params,
                                                     const ExtraKitchenKwargs& kwargs) const {
  const GroupedLinearArgs& args = stash_->args;
  modules::LinearOptions options;
  options.in_features = stash_->input_size;
  options.out_features = stash_->output_size;
  options.fuse_wgrad_accumulation = config->gradient_accumulation_fusion;
  options.tp_group = args.tp_group;
  if (!options.tp_group && args.pg_collection) options.tp_group = args.pg_collection->expt_tp;
  options.tp_group = get_tensor_model_parallel_group_if_none(options.tp_group, args.is_expert);
  options.tp_size = options.tp_group->size();
  options.rng_tracker = &get_cuda_rng_tracker();
  if (args.is_expert) options.rng_tracker_name = get_expert_parallel_rng_tracker_name();
  options.init_method = stash_->init_method;
  options.bias = stash_->bias;
  options.return_bias = kitchen_return_bias;
  options.parallel_mode = stash_->parallel_mode;
  options.params_dtype = kwargs.params_dtype;
  options.device = kwargs.device;
  options.qlinear_params = quant_params.qlinear_params;
  options.ub_name = args.tp_comm_buffer_name;
  options.layer_number = args.layer_number;
  options.logical_name = quant_params.match_input.module_path;
  if (!args.is_expert && config->sequence_parallel && options.tp_size > 1) {
    throw NotImplementedError(class_name() +
                              ": sequence_parallel without is_expert is not supported; "
                              "rows sorted by expert are no sequence");
  }
  return options;
}

void KitchenGroupedLinear::finish_init(
    const std::optional<QuantizationConfig>& quantization_config) {
  if (init_finished) throw AssertionError(class_name() + ": finish_init already called");
  const ExtraKitchenKwargs kwargs =
      _get_extra_kitchen_kwargs(extension::as_transformer_config(*config));
  const KitchenQuantizationParams quant_params =
      extension::parse_quantization(class_name(), quantization_config);
  (void)extension::require_qlinear_params(class_name(), quant_params);
  modules::LinearOptions options = resolve(quant_params, kwargs);
  const bool is_expert = stash_->args.is_expert;
  const bool experts_are_split = config->expert_model_parallel_size > 1;
  const bool splits_itself =
      extension::apply_expert_rule(class_name(), is_expert, experts_are_split, options);
  const auto ep_rank = group_of(groups_, &ProcessGroupCollection::ep)->rank();
  GroupedLinear::init(options, is_expert ? ep_rank * num_gemms : 0);
  explicit_expert_comm = splits_itself;
  expert_parallel = experts_are_split;
  kitchen_quant_params = quant_params;
  for (const auto& [name, parameter] : own_parameters()) {
    parameter->allreduce = !(is_expert && expert_parallel);
  }
  stash_ = nullptr;
  init_finished = true;
}

void KitchenGroupedLinear::require_init() const {
  if (init_finished) return;
  throw AssertionError(class_name() +
                       ": must call finish_init first; the model's constructor does it");
}

std::pair<Tensor, std::optional<std::vector<Tensor>>> KitchenGroupedLinear::forward(
    const Tensor& x, const std::vector<std::int64_t>& m_splits) {
  require_init();
  modules::GroupedLinearOutput result = GroupedLinear::forward(
      x, m_splits,
      extension::first_microbatch(is_first_microbatch, disable_parameter_transpose_cache));
  is_first_microbatch = false;
  return result;
}

Tensor KitchenGroupedLinear::_encode_extra_state(const ExtraState& state) const {
  const std::vector<std::uint8_t> bytes = modules::encode_expert_states(state);
  return Tensor::from_vector(default_context(), {static_cast<std::int64_t>(bytes.size())}, bytes);
}

ExtraState KitchenGroupedLinear::_decode_extra_state(const Tensor& state) const {
  if (!state.defined() || state.dtype() != DType::uint8 || state.rank() != 1) {
    const std::string found =
        state.defined() ? to_string(state.dtype()) + " " + to_string(state.shape()) : "no tensor";
    throw RuntimeError(class_name() + ": Unsupported checkpoint format: the extra state is " +
                       found + ", expected a 1-D uint8 tensor");
  }
  return modules::decode_expert_states(state.to_vector<std::uint8_t>());
}

std::vector<Tensor> KitchenGroupedLinear::_split_extra_state(const Tensor& state) const {
  ExtraState states(static_cast<std::size_t>(num_gemms));
  if (state.defined() && state.numel() > 0) {
    states = _decode_extra_state(state);
    if (static_cast<std::int64_t>(states.size()) != num_gemms) {
      throw AssertionError(class_name() + ": the extra state holds " +
                           std::to_string(states.size()) + " experts, the layer has " +
                           std::to_string(num_gemms));
    }
  }
  std::vector<Tensor> tensors;
  for (const std::vector<std::uint8_t>& bytes : states) {
    tensors.push_back(
        Tensor::from_vector(default_context(), {static_cast<std::int64_t>(bytes.size())}, bytes));
  }
  return tensors;
}

std::map<std::string, int> KitchenGroupedLinear::axes_of_experts(
    const std::map<std::string, int>& axes) const {
  std::map<std::string, int> result;
  for (std::int64_t i = 0; i < num_gemms; ++i) {
    for (const auto& [name, axis] : axes) result.emplace(std::to_string(i) + "." + name, axis);
  }
  return result;
}

ShardedStateDict KitchenGroupedLinear::shards_of_expert(
    std::int64_t i, const Tensor& state, const std::map<std::string, int>& tp_axis_map,
    const ShardedOffsets& sharded_offsets, const Metadata* metadata) const {
  const auto ep = group_of(groups_, &ProcessGroupCollection::ep);
  const auto expert_data_parallel = group_of(groups_, &ProcessGroupCollection::expt_dp);
  ShardedOffsets offsets = sharded_offsets;
  offsets.emplace_back(static_cast<int>(sharded_offsets.size()), ep->rank() * num_gemms + i,
                       ep->size() * num_gemms);
  const std::string name = std::to_string(i) + ".";
  std::vector<StateDict::Item> items{{name + "weight", expert(i).weight.detach()}};
  if (use_bias) items.emplace_back(name + "bias", expert(i).bias.detach());
  items.emplace_back(name + "_extra_state", state);
  ShardedStateDict shards = make_sharded_tensors_for_checkpoint(
      items, "", tp_axis_map, offsets, sharding_group(), extension::dp_cp_group_of(metadata));
  for (auto& [key, value] : shards.items()) {
    std::visit([&](auto& shard) { shard.replica_id[2] = expert_data_parallel->rank(); }, value);
  }
  return shards;
}

ShardedStateDict KitchenGroupedLinear::_sharded_state_dict_grouped(
    const std::map<std::string, int>& tp_axis_map, const std::string& prefix,
    const ShardedOffsets& sharded_offsets, const Metadata* metadata) const {
  require_init();
  if (metadata != nullptr && metadata->singleton_local_shards) {
    throw NotImplementedError(class_name() + ": singleton_local_shards is not supported");
  }
  const std::vector<Tensor> states = _split_extra_state(get_extra_state());
  ShardedStateDict result;
  for (std::int64_t i = 0; i < num_gemms; ++i) {
    const std::string index = std::to_string(i);
    ShardedStateDict shards = shards_of_expert(i, states[static_cast<std::size_t>(i)], tp_axis_map,
                                               sharded_offsets, metadata);
    replace_prefix_for_sharding(shards, index + ".", prefix);
    for (const auto& [name, value] : shards.items()) {
      const std::string leaf = name.substr(index.size() + 1);
      const bool is_first_state = leaf == "_extra_state" && i == 0;
      result.set(prefix + leaf + (is_first_state ? "" : index), value);
    }
  }
  return result;
}

ModuleInfo KitchenGroupedLinear::module_info() {
  return {kClass,
          {"num_gemms", "input_size", "output_size", "parallel_mode", "config", "init_method",
           "bias", "skip_bias_add", "is_expert", "tp_comm_buffer_name", "layer_number", "tp_group",
           "pg_collection"},
          [](const BuildArgs& args) -> std::shared_ptr<Module> {
            GroupedLinearArgs a;
            a.parallel_mode = args.get<std::optional<std::string>>("parallel_mode");
            a.config = modules::config_of(args);
            a.init_method = args.get<InitMethod>("init_method");
            a.bias = args.get<bool>("bias");
            a.skip_bias_add = args.get<bool>("skip_bias_add");
            args.assign("is_expert", a.is_expert);
            args.assign("tp_comm_buffer_name", a.tp_comm_buffer_name);
            args.assign("layer_number", a.layer_number);
            args.assign("tp_group", a.tp_group);
            args.assign("pg_collection", a.pg_collection);
            return std::make_shared<KitchenGroupedLinear>(args.get<std::int64_t>("num_gemms"),
                                                          args.get<std::int64_t>("input_size"),
                                                          args.get<std::int64_t>("output_size"), a);
          }};
}

}  // namespace kitchen
