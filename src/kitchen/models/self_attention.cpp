#include "kitchen/models/self_attention.h"

#include "kitchen/autograd/nn_functions.h"
#include "kitchen/autograd/recompute.h"
#include "kitchen/autograd/view_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/modules/init_methods.h"
#include "kitchen/parallel/rng_tracker.h"

namespace kitchen {

struct SelfAttention::QueryKeyValue {
  Tensor q;  ///< [s, b, np, hn]
  Tensor k;  ///< [s, b, ng, hn]
  Tensor v;  ///< [s, b, ng, hn]
};

namespace {

template <class Interface>
Interface& as(const std::shared_ptr<Module>& module, const char* role) {
  auto* part = dynamic_cast<Interface*>(module.get());
  if (part == nullptr) {
    throw TypeError(std::string("SelfAttention: ") + role + " of class " + module->class_name() +
                    " has not the wanted interface");
  }
  return *part;
}

/// Puts back the default generator and the tracker's states as they were when this was called.
std::function<void()> capture_rng() {
  const GeneratorState current = default_generator();
  const auto states = get_cuda_rng_tracker().get_states();
  return [current, states] {
    default_generator() = current;
    get_cuda_rng_tracker().set_states(states);
  };
}

void require_groups_of_each_rank(std::int64_t groups, const ProcessGroup& tp) {
  if (groups % tp.size() == 0) return;
  throw NotImplementedError("SelfAttention: num_query_groups " + std::to_string(groups) + " on " +
                            std::to_string(tp.size()) +
                            " tensor-parallel ranks: a group shared by ranks is not supported; "
                            "choose a number of ranks that divides the groups");
}

bool recomputes_core(const TransformerConfig& config) {
  return config.recompute_granularity == "selective" &&
         config.recompute_modules.count("core_attn") != 0;
}

}  // namespace

SelfAttention::SelfAttention(std::shared_ptr<TransformerConfig> transformer_config,
                             const SelfAttentionSubmodules& submodules, std::int64_t layer_number,
                             AttnMaskType attn_mask_type,
                             std::shared_ptr<const ProcessGroupCollection> pg_collection,
                             std::optional<RotaryOptions> rotary)
    : MegatronModule(std::move(transformer_config)), attn_mask_type_(attn_mask_type), rotary_(rotary) {
  if (!submodules.linear_qkv || !submodules.core_attention || !submodules.linear_proj) {
    throw ValueError("SelfAttention: submodules must name linear_qkv, core_attention and linear_proj");
  }
  if (!pg_collection) pg_collection = ProcessGroupCollection::use_mpu_process_groups();
  const std::int64_t all_heads = config->num_attention_heads;
  const std::int64_t all_groups = config->num_query_groups.value_or(all_heads);
  head_dim_ = config->kv_channels.value();
  require_groups_of_each_rank(all_groups, *pg_collection->tp);
  heads_ = divide(all_heads, pg_collection->tp->size());
  groups_ = divide(all_groups, pg_collection->tp->size());

  const InitMethod init =
      config->init_method ? config->init_method : init_method_normal(config->init_method_std);
  const InitMethod output_init = config->output_layer_init_method
                                     ? config->output_layer_init_method
                                     : init_method_normal(config->output_layer_init_std());
  const std::int64_t projection = head_dim_ * all_heads;
  BuildArgs qkv({config->hidden_size, projection + 2 * head_dim_ * all_groups},
                {{"config", config},
                 {"init_method", init},
                 {"gather_output", false},
                 {"bias", config->add_bias_linear || config->add_qkv_bias},
                 {"skip_bias_add", false},
                 {"is_expert", false},
                 {"tp_comm_buffer_name", std::optional<std::string>("qkv")},
                 {"tp_group", pg_collection->tp}});
  linear_qkv = build_module(*submodules.linear_qkv, std::move(qkv));
  BuildArgs core({config, layer_number, attn_mask_type, std::string("self")},
                 {{"softmax_scale", config->softmax_scale},
                  {"cp_comm_type", config->cp_comm_type},
                  {"pg_collection", pg_collection}});
  core_attention = build_module(*submodules.core_attention, std::move(core));
  BuildArgs proj({projection, config->hidden_size},
                 {{"config", config},
                  {"init_method", output_init},
                  {"bias", config->add_bias_linear},
                  {"input_is_parallel", true},
                  {"skip_bias_add", true},
                  {"is_expert", false},
                  {"tp_comm_buffer_name", std::optional<std::string>("proj")},
                  {"tp_group", pg_collection->tp}});
  linear_proj = build_module(*submodules.linear_proj, std::move(proj));
  const auto build_norm = [&](const std::optional<ModuleSpec>& spec) -> std::shared_ptr<Module> {
    if (!spec) return nullptr;
    return build_module(*spec, BuildArgs({}, {{"config", config},
                                              {"hidden_size", head_dim_},
                                              {"eps", config->layernorm_epsilon}}));
  };
  q_layernorm = build_norm(submodules.q_layernorm);
  k_layernorm = build_norm(submodules.k_layernorm);
  if (pg_collection->tp->size() > 1) {
    for (const auto& norm : {q_layernorm, k_layernorm}) {
      if (!norm) continue;
      // Replicated, but each rank normalises only its own heads.
      for (const auto& [name, parameter] : norm->named_parameters()) parameter->sequence_parallel = true;
    }
  }
  register_child("linear_qkv", linear_qkv);
  register_child("core_attention", core_attention);
  register_child("linear_proj", linear_proj);
  register_child("q_layernorm", q_layernorm);
  register_child("k_layernorm", k_layernorm);
}

SelfAttention::QueryKeyValue SelfAttention::project(const Tensor& hidden) {
  const Tensor mixed = as<modules::ForwardLinear>(linear_qkv, "linear_qkv").forward(hidden).first;
  const std::int64_t s = mixed.dim(0);
  const std::int64_t b = mixed.dim(1);
  const std::int64_t per_group = heads_ / groups_;
  const Tensor grouped =
      autograd::reshape(mixed, {s, b, groups_, (per_group + 2) * head_dim_});
  const std::vector<Tensor> parts =
      autograd::split(grouped, 3, {per_group * head_dim_, head_dim_, head_dim_});
  QueryKeyValue qkv{autograd::reshape(parts[0], {s, b, heads_, head_dim_}), parts[1], parts[2]};
  if (q_layernorm) {
    qkv.q = as<modules::ForwardTensor>(q_layernorm, "q_layernorm").forward(autograd::contiguous(qkv.q));
  }
  if (k_layernorm) {
    qkv.k = as<modules::ForwardTensor>(k_layernorm, "k_layernorm").forward(autograd::contiguous(qkv.k));
  }
  if (rotary_) {
    const auto rotated =
        static_cast<std::int64_t>(static_cast<double>(head_dim_) * rotary_->percent) / 2 * 2;
    qkv.q = autograd::rotary(qkv.q, rotated, rotary_->base);
    qkv.k = autograd::rotary(qkv.k, rotated, rotary_->base);
  }
  return qkv;
}

Tensor SelfAttention::run_core(const QueryKeyValue& qkv,
                               const std::optional<Tensor>& attention_mask) {
  auto& core = as<modules::ForwardAttention>(core_attention, "core_attention");
  const auto run = [&core, attention_mask, type = attn_mask_type_](const std::vector<Tensor>& in) {
    return core.forward(in[0], in[1], in[2], attention_mask, type);
  };
  const std::vector<Tensor> inputs{qkv.q, qkv.k, qkv.v};
  if (training && recomputes_core(*config)) return autograd::recompute(run, inputs, &capture_rng);
  return run(inputs);
}

std::pair<Tensor, std::optional<Tensor>> SelfAttention::forward(
    const Tensor& hidden, const std::optional<Tensor>& attention_mask) {
  const Tensor context = run_core(project(hidden), attention_mask);
  return as<modules::ForwardLinear>(linear_proj, "linear_proj").forward(context);
}

ModuleInfo SelfAttention::module_info() {
  return {"SelfAttention",
          {"config", "submodules", "layer_number", "attn_mask_type", "pg_collection", "rotary"},
          [](const BuildArgs& args) -> std::shared_ptr<Module> {
            return std::make_shared<SelfAttention>(
                args.get<std::shared_ptr<TransformerConfig>>("config"),
                args.get<SelfAttentionSubmodules>("submodules"),
                args.get<std::int64_t>("layer_number"), args.get<AttnMaskType>("attn_mask_type"),
                args.get_or<std::shared_ptr<const ProcessGroupCollection>>("pg_collection", nullptr),
                args.get_or<std::optional<RotaryOptions>>("rotary", {}));
          }};
}

}  // namespace kitchen
