#include "kitchen/modules/grouped_linear.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/modules/expert_state.h"

namespace kitchen::modules {

namespace {

constexpr const char* kExtraState = "_extra_state";

std::vector<std::uint8_t> bytes_of(const Tensor& state) {
  if (!state.defined() || state.numel() == 0) return {};
  return state.to_vector<std::uint8_t>();
}

}  // namespace

GroupedLinear::GroupedLinear(std::int64_t count) : num_gemms(count) {
  if (count <= 0) {
    throw ValueError("GroupedLinear: num_gemms is " + std::to_string(count) +
                     ", expected at least 1");
  }
  for (std::int64_t i = 0; i < count; ++i) {
    experts_.push_back(std::make_unique<Linear>());
    register_parameter("weight" + std::to_string(i), &experts_.back()->weight);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    register_parameter("bias" + std::to_string(i), &expert(i).bias);
  }
}

Linear& GroupedLinear::expert(std::int64_t i) const {
  return *experts_.at(static_cast<std::size_t>(i));
}

void GroupedLinear::init(const LinearOptions& options, std::int64_t first_expert) {
  LinearOptions each = options;
  const std::string path =
      options.logical_name.empty()
          ? "layer" + std::to_string(current_rank_state().next_creation_index())
          : options.logical_name;
  try {
    for (std::int64_t i = 0; i < num_gemms; ++i) {
      each.logical_name = expert_path(path, first_expert + i);
      expert(i).init(each);
    }
  } catch (...) {
    for (const auto& [name, parameter] : own_parameters()) *parameter = Parameter();
    throw;
  }
  const Linear& first = expert(0);
  in_features = first.in_features;
  out_features = first.out_features;
  use_bias = first.use_bias;
  tp_size = first.tp_size;
  parallel_mode = first.parallel_mode;
}

GroupedLinearOutput GroupedLinear::forward(const Tensor& x,
                                           const std::vector<std::int64_t>& m_splits,
                                           std::optional<bool> is_first_microbatch) {
  GroupedLinearCall call;
  call.splits = m_splits;
  std::vector<Tensor> weights;
  std::vector<Tensor> biases;
  for (const std::unique_ptr<Linear>& expert : experts_) {
    call.experts.push_back(expert->begin_forward(is_first_microbatch));
    weights.push_back(expert->weight);
    if (use_bias) biases.push_back(expert->bias);
  }
  const bool returns_bias = use_bias && expert(0).options().return_bias;
  const Tensor y =
      GroupedLinearFunction::apply(x, weights, returns_bias ? std::vector<Tensor>() : biases, call);
  if (returns_bias) return {y, biases};
  return {y, std::nullopt};
}

void GroupedLinear::set_tensor_parallel_group(const std::shared_ptr<ProcessGroup>& group) {
  for (const auto& expert : experts_) expert->set_tensor_parallel_group(group);
}

void GroupedLinear::reset_parameters() {
  for (const auto& expert : experts_) expert->reset_parameters();
}

void GroupedLinear::finish_quantization_step() {
  for (const auto& expert : experts_) expert->finish_quantization_step();
}

std::shared_ptr<ProcessGroup> GroupedLinear::sharding_group() const {
  return expert(0).sharding_group();
}

Tensor GroupedLinear::get_extra_state() const {
  const ContextPtr& context = expert(0).weight.context();
  ExpertStates states;
  bool has_state = false;
  for (const auto& expert : experts_) {
    const Tensor state = expert->get_extra_state();
    has_state = has_state || state.numel() > 0;
    const bool readable = !context->is_meta();
    states.push_back(readable ? bytes_of(state)
                              : std::vector<std::uint8_t>(static_cast<std::size_t>(state.numel())));
  }
  const std::vector<std::uint8_t> bytes =
      has_state ? encode_expert_states(states) : std::vector<std::uint8_t>();
  const auto count = static_cast<std::int64_t>(bytes.size());
  if (count == 0 || context->is_meta()) return Tensor::empty(context, {count}, DType::uint8);
  return Tensor::from_vector(context, {count}, bytes);
}

std::string GroupedLinear::extra_state_mismatch(const Tensor& value) const {
  if (!expert(0).quantizers().has_state() || !value.defined() || value.numel() == 0) return "";
  if (value.dtype() != DType::uint8)
    return "a tensor of " + to_string(value.dtype()) + ", not uint8";
  ExpertStates states;
  try {
    states = decode_expert_states(bytes_of(value));
  } catch (const RuntimeError& error) {
    return error.what();
  }
  if (states.size() != experts_.size()) {
    return "the state of " + std::to_string(states.size()) + " experts, the layer has " +
           std::to_string(experts_.size());
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].empty()) continue;
    const std::string problem = experts_[i]->quantizers().mismatch(states[i]);
    if (!problem.empty()) return "for expert " + std::to_string(i) + ", " + problem;
  }
  return "";
}

void GroupedLinear::set_extra_state(const Tensor& state) {
  if (!state.defined() || state.numel() == 0) return;
  if (!expert(0).quantizers().has_state()) {
    logger().info(class_name() + ": extra state of " + std::to_string(state.numel()) +
                  " bytes is ignored; the quantizers of this recipe keep no state");
    return;
  }
  const std::string problem = extra_state_mismatch(state);
  if (!problem.empty()) {
    throw RuntimeError(class_name() + ": Unsupported checkpoint format: " + problem);
  }
  const ExpertStates states = decode_expert_states(bytes_of(state));
  for (std::size_t i = 0; i < states.size(); ++i) {
    const auto count = static_cast<std::int64_t>(states[i].size());
    experts_[i]->set_extra_state(Tensor::from_vector(state.context(), {count}, states[i]));
  }
}

std::vector<StateDict::Item> GroupedLinear::extra_state() const {
  if (!expert(0).weight.defined()) return {};
  return {{kExtraState, get_extra_state()}};
}

void GroupedLinear::load_extra_state(const std::string& /*name*/, const Tensor& value) {
  set_extra_state(value);
}

void GroupedLinear::adapt_state(const std::string& prefix, StateDict& state) const {
  ExpertStates states;
  for (std::int64_t i = 0; i < num_gemms; ++i) {
    const std::string name = prefix + kExtraState + (i == 0 ? "" : std::to_string(i));
    if (!state.contains(name) || state.at(name).dtype() != DType::uint8) return;
    states.push_back(bytes_of(state.at(name)));
    if (are_expert_states(states.back())) return;
  }
  const std::vector<std::uint8_t> merged = encode_expert_states(states);
  state.set(prefix + kExtraState,
            Tensor::from_vector(expert(0).weight.context(),
                                {static_cast<std::int64_t>(merged.size())}, merged));
}

}  // namespace kitchen::modules
