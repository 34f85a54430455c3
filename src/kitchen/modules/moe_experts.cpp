#include "kitchen/modules/moe_experts.h"

#include "kitchen/autograd/math_functions.h"
#include "kitchen/autograd/nn_functions.h"
#include "kitchen/autograd/view_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/modules/mlp_parts.h"

#include <numeric>

namespace kitchen {

namespace {

void require_experts(const char* class_name, std::int64_t count, const TransformerConfig& config) {
  if (count <= 0) {
    throw ValueError(std::string(class_name) + ": num_local_experts is " + std::to_string(count) +
                     ", expected at least 1");
  }
  if (config.moe_apply_probs_on_input) {
    throw NotImplementedError(std::string(class_name) +
                              ": moe_apply_probs_on_input is not supported");
  }
}

void require_sizes(const char* class_name, const Tensor& tokens,
                   const std::vector<std::int64_t>& tokens_per_expert, const Tensor& probs,
                   std::int64_t num_experts) {
  const auto sum =
      std::accumulate(tokens_per_expert.begin(), tokens_per_expert.end(), std::int64_t{0});
  const bool fits = tokens.rank() == 2 && probs.shape() == Shape{tokens.dim(0)} &&
                    static_cast<std::int64_t>(tokens_per_expert.size()) == num_experts &&
                    sum == tokens.dim(0);
  if (fits) return;
  throw ValueError(std::string(class_name) + ": tokens " + to_string(tokens.shape()) + ", probs " +
                   to_string(probs.shape()) + " and tokens_per_expert " +
                   to_string(Shape(tokens_per_expert)) + " do not fit " +
                   std::to_string(num_experts) + " experts; expected [rows, hidden], [rows] and " +
                   "one number an expert, rows in all");
}

std::shared_ptr<const ProcessGroupCollection> groups_or_default(
    std::shared_ptr<const ProcessGroupCollection> groups) {
  return groups ? std::move(groups) : ProcessGroupCollection::use_mpu_process_groups();
}

/// The child `local_experts`: a list.
class ExpertList : public Module {
 public:
  explicit ExpertList(const std::vector<std::shared_ptr<MLP>>& experts) {
    for (const auto& expert : experts) {
      register_child(std::to_string(named_children().size()), expert);
    }
  }
  [[nodiscard]] std::string class_name() const override { return "ModuleList"; }
};

modules::ForwardGroupedLinear* as_grouped(const std::shared_ptr<Module>& module, const char* role) {
  auto* linear = dynamic_cast<modules::ForwardGroupedLinear*>(module.get());
  if (linear != nullptr) return linear;
  throw TypeError(std::string("TEGroupedMLP: ") + role + " of class " + module->class_name() +
                  " is no grouped linear layer");
}

/// out plus the bias of each row's expert, times the row's probability.
Tensor add_expert_biases(const Tensor& out, const std::vector<Tensor>& biases,
                         const std::vector<std::int64_t>& splits, const Tensor& probs) {
  const std::vector<Tensor> rows = autograd::split(out, 0, splits);
  const std::vector<Tensor> scales = autograd::split(probs, 0, splits);
  std::vector<Tensor> sums;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    sums.push_back(modules::add_scaled_bias(rows[i], biases[i], scales[i]));
  }
  return autograd::concatenate(sums, 0);
}

template <class T>
ModuleInfo experts_info(const char* name) {
  return {name,
          {"num_local_experts", "config", "submodules", "pg_collection"},
          [](const BuildArgs& args) -> std::shared_ptr<Module> {
            return std::make_shared<T>(args.get<std::int64_t>("num_local_experts"),
                                       args.get<std::shared_ptr<TransformerConfig>>("config"),
                                       args.get<MLPSubmodules>("submodules"),
                                       args.get_or<std::shared_ptr<const ProcessGroupCollection>>(
                                           "pg_collection", nullptr));
          }};
}

}  // namespace

SequentialMLP::SequentialMLP(std::int64_t num_local_experts,
                             std::shared_ptr<TransformerConfig> transformer_config,
                             const MLPSubmodules& submodules,
                             std::shared_ptr<const ProcessGroupCollection> pg_collection)
    : Experts(std::move(transformer_config)), groups_(groups_or_default(std::move(pg_collection))) {
  require_experts("SequentialMLP", num_local_experts, *config);
  for (std::int64_t i = 0; i < num_local_experts; ++i) {
    experts_.push_back(std::make_shared<MLP>(config, submodules, /*is_expert=*/true, std::nullopt,
                                             config->moe_ffn_hidden_size, groups_->expt_tp));
  }
  register_child("local_experts", std::make_shared<ExpertList>(experts_));
}

std::pair<Tensor, std::optional<Tensor>> SequentialMLP::forward(
    const Tensor& tokens, const std::vector<std::int64_t>& tokens_per_expert, const Tensor& probs) {
  require_sizes("SequentialMLP", tokens, tokens_per_expert, probs,
                static_cast<std::int64_t>(experts_.size()));
  const std::vector<Tensor> rows = autograd::split(tokens, 0, tokens_per_expert);
  const std::vector<Tensor> scales = autograd::split(probs, 0, tokens_per_expert);
  std::vector<Tensor> outs;
  for (std::size_t i = 0; i < experts_.size(); ++i) {
    outs.push_back(experts_[i]->forward(rows[i], scales[i]).first);
  }
  return {autograd::concatenate(outs, 0), std::nullopt};
}

ShardedStateDict SequentialMLP::sharded_state_dict(const std::string& prefix,
                                                   const ShardedOffsets& sharded_offsets,
                                                   const Metadata* metadata) {
  const auto count = static_cast<std::int64_t>(experts_.size());
  ShardedStateDict result;
  for (std::int64_t i = 0; i < count; ++i) {
    ShardedOffsets offsets = sharded_offsets;
    offsets.emplace_back(static_cast<int>(sharded_offsets.size()), groups_->ep->rank() * count + i,
                         groups_->ep->size() * count);
    const std::string name = prefix + "local_experts." + std::to_string(i) + ".";
    ShardedStateDict shards =
        experts_[static_cast<std::size_t>(i)]->sharded_state_dict(name, offsets, metadata);
    replace_prefix_for_sharding(shards, name, prefix + "experts.");
    for (auto& [key, value] : shards.items()) {
      std::visit([&](auto& shard) { shard.replica_id[2] = groups_->expt_dp->rank(); }, value);
    }
    result.update(shards);
  }
  return result;
}

ModuleInfo SequentialMLP::module_info() {
  return experts_info<SequentialMLP>("SequentialMLP");
}

TEGroupedMLP::TEGroupedMLP(std::int64_t num_local_experts,
                           std::shared_ptr<TransformerConfig> transformer_config,
                           const MLPSubmodules& submodules,
                           std::shared_ptr<const ProcessGroupCollection> pg_collection)
    : Experts(std::move(transformer_config)),
      num_local_experts_(num_local_experts),
      groups_(groups_or_default(std::move(pg_collection))) {
  require_experts("TEGroupedMLP", num_local_experts, *config);
  activation_ = modules::activation_options("TEGroupedMLP", *config);
  if (!submodules.linear_fc1 || !submodules.linear_fc2) {
    throw ValueError("TEGroupedMLP: submodules must name linear_fc1 and linear_fc2");
  }
  const std::int64_t ffn = config->moe_ffn_hidden_size.value();
  const auto arguments = [&](std::int64_t in, std::int64_t out, const InitMethod& init,
                             bool skip_bias_add, const char* buffer) {
    return BuildArgs({num_local_experts, in, out},
                     {{"config", config},
                      {"init_method", init},
                      {"bias", config->add_bias_linear},
                      {"skip_bias_add", skip_bias_add},
                      {"is_expert", true},
                      {"tp_comm_buffer_name", std::optional<std::string>(buffer)},
                      {"pg_collection", groups_}});
  };
  linear_fc1 =
      build_module(*submodules.linear_fc1,
                   arguments(config->hidden_size, config->gated_linear_unit ? 2 * ffn : ffn,
                             modules::fc1_init(*config), false, "fc1"));
  linear_fc2 =
      build_module(*submodules.linear_fc2,
                   arguments(ffn, config->hidden_size, modules::fc2_init(*config), true, "fc2"));
  fc1_ = as_grouped(linear_fc1, "linear_fc1");
  fc2_ = as_grouped(linear_fc2, "linear_fc2");
  register_child("linear_fc1", linear_fc1);
  register_child("linear_fc2", linear_fc2);
}

std::pair<Tensor, std::optional<Tensor>> TEGroupedMLP::forward(
    const Tensor& tokens, const std::vector<std::int64_t>& tokens_per_expert, const Tensor& probs) {
  require_sizes("TEGroupedMLP", tokens, tokens_per_expert, probs, num_local_experts_);
  const Tensor intermediate = fc1_->forward(tokens, tokens_per_expert).first;
  const Tensor activated = autograd::bias_activation(intermediate, Tensor(), activation_);
  const auto [out, biases] =
      fc2_->forward(modules::scale_rows(activated, probs), tokens_per_expert);
  if (!biases) return {out, std::nullopt};
  return {add_expert_biases(out, *biases, tokens_per_expert, probs), std::nullopt};
}

ShardedStateDict TEGroupedMLP::sharded_state_dict(const std::string& prefix,
                                                  const ShardedOffsets& sharded_offsets,
                                                  const Metadata* metadata) {
  ShardedStateDict result;
  for (const auto& [name, module] : named_children()) {
    const std::string path = prefix + name + ".";
    ShardedStateDict shards = module->sharded_state_dict(path, sharded_offsets, metadata);
    replace_prefix_for_sharding(shards, path, prefix + "experts." + name + ".");
    for (std::int64_t i = 0; i < num_local_experts_ && name == "linear_fc1"; ++i) {
      if (!config->gated_linear_unit) break;
      for (const char* leaf : {"weight", "bias"}) {
        modules::shard_gate_and_up(shards, path + leaf + std::to_string(i), *groups_->expt_tp);
      }
    }
    result.update(shards);
  }
  return result;
}

ModuleInfo TEGroupedMLP::module_info() {
  return experts_info<TEGroupedMLP>("TEGroupedMLP");
}

ModuleInfo GroupedMLP::module_info() {
  return {"GroupedMLP",
          {"num_local_experts", "config", "submodules", "pg_collection"},
          [](const BuildArgs&) -> std::shared_ptr<Module> {
            throw NotImplementedError(
                "GroupedMLP: the legacy grouped experts are not supported; set "
                "moe_use_legacy_grouped_gemm = false");
          }};
}

}  // namespace kitchen
