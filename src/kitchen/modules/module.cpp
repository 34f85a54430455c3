#include "kitchen/modules/module.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/parallel/process_group_collection.h"

#include <algorithm>
#include <ostream>
#include <set>

namespace kitchen {

namespace {

constexpr const char* kExtraState = "_extra_state";

bool is_extra_state(const std::string& name) { return name.find(kExtraState) != std::string::npos; }

/// Why `found` cannot be copied into `own`; empty if it can.
std::string mismatch(const std::string& name, const Tensor& found, const Tensor& own) {
  const std::string line = "\n  " + name + ": found ";
  if (!found.defined()) return line + "an undefined tensor";
  if (found.shape() != own.shape()) {
    return line + "shape " + to_string(found.shape()) + ", the model has " + to_string(own.shape());
  }
  if (!is_high_precision(found.dtype())) {
    return line + "dtype " + to_string(found.dtype()) + ", the model has " + to_string(own.dtype());
  }
  if (found.context() != own.context()) {
    return line + "a tensor on " + to_string(found.device()) +
           " in another context than the model's on " + to_string(own.device());
  }
  return "";
}

}  // namespace

void Module::train(bool mode) {
  for (auto& [name, module] : named_modules()) module->training = mode;
}

std::vector<std::pair<std::string, std::shared_ptr<Module>>> Module::named_children() const {
  return children_;
}

std::vector<std::pair<std::string, std::shared_ptr<Module>>> Module::named_modules() const {
  auto* self = const_cast<Module*>(this);
  std::shared_ptr<Module> handle = self->weak_from_this().lock();
  if (!handle) handle = std::shared_ptr<Module>(std::shared_ptr<void>(), self);
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> all{{"", handle}};
  for (const auto& [name, child] : children_) {
    for (auto& [path, module] : child->named_modules()) {
      all.emplace_back(path.empty() ? name : name + "." + path, module);
    }
  }
  return all;
}

std::vector<std::pair<std::string, Parameter*>> Module::named_parameters() const {
  std::vector<std::pair<std::string, Parameter*>> all;
  std::set<const void*> seen;
  for (auto& [path, module] : named_modules()) {
    for (const auto& [name, parameter] : module->parameters_) {
      if (!parameter->defined() || !seen.insert(parameter->id()).second) continue;
      all.emplace_back(path.empty() ? name : path + "." + name, parameter);
    }
  }
  return all;
}

std::vector<StateDict::Item> Module::own_state() const {
  std::vector<StateDict::Item> items;
  for (const auto& [name, parameter] : parameters_) {
    if (parameter->defined()) items.emplace_back(name, parameter->detach());
  }
  for (const StateDict::Item& item : extra_state()) items.push_back(item);
  return items;
}

void Module::collect_state(const std::string& prefix, StateDict& state) const {
  for (const auto& [name, tensor] : own_state()) state.set(prefix + name, tensor);
  for (const auto& [name, child] : children_) child->collect_state(prefix + name + ".", state);
}

StateDict Module::state_dict(const std::string& prefix) const {
  StateDict state;
  collect_state(prefix, state);
  return state;
}

/// Also tells how many layers keep the quantizer state that they have, since `state` has none for them.
std::string Module::extra_state_problems(const StateDict& state) const {
  std::string problems;
  std::int64_t kept = 0;
  for (const auto& [path, module] : named_modules()) {
    for (const auto& [item, own] : module->extra_state()) {
      const std::string name = path.empty() ? item : path + "." + item;
      if (!state.contains(name) || !state.at(name).defined() || state.at(name).numel() == 0) {
        if (own.numel() > 0) ++kept;
        continue;
      }
      const std::string problem = module->extra_state_mismatch(state.at(name));
      if (!problem.empty()) problems += "\n  " + name + ": found " + problem;
    }
  }
  if (kept > 0 && problems.empty()) {
    logger().info("load_state_dict of " + class_name() + ": no quantizer state for " +
                  std::to_string(kept) + " layers; their scales and histories stay as they are");
  }
  return problems;
}

void Module::load_state_dict(const StateDict& given, bool strict) {
  StateDict state = given;
  for (const auto& [path, module] : named_modules()) {
    module->adapt_state(path.empty() ? "" : path + ".", state);
  }
  const StateDict own = state_dict();
  std::string problems;
  for (const auto& [name, tensor] : own.items()) {
    if (!state.contains(name)) {
      if (strict && !is_extra_state(name)) problems += "\n  missing: " + name;
      continue;
    }
    if (!is_extra_state(name)) problems += mismatch(name, state.at(name), tensor);
  }
  for (const auto& [name, tensor] : state.items()) {
    if (strict && !is_extra_state(name) && !own.contains(name)) problems += "\n  unexpected: " + name;
  }
  problems += extra_state_problems(state);
  if (!problems.empty()) {
    throw RuntimeError("load_state_dict of " + class_name() + ": nothing was loaded, because" +
                       problems);
  }
  for (auto& [path, module] : named_modules()) {
    const std::string prefix = path.empty() ? "" : path + ".";
    for (const auto& [name, parameter] : module->parameters_) {
      if (!parameter->defined() || !state.contains(prefix + name)) continue;
      ops::copy_into(state.at(prefix + name).detach(), parameter->detach());
      parameter->bump_version();
    }
    for (const auto& [name, value] : module->extra_state()) {
      if (state.contains(prefix + name)) module->load_extra_state(name, state.at(prefix + name));
    }
  }
}

ShardedStateDict Module::sharded_state_dict(const std::string& prefix,
                                            const ShardedOffsets& sharded_offsets,
                                            const Metadata* metadata) {
  const auto groups = ProcessGroupCollection::use_mpu_process_groups();
  const bool has_group = metadata != nullptr && metadata->dp_cp_group;
  std::map<std::string, int> axes;
  for (const auto& [name, parameter] : parameters_) {
    if (parameter->tensor_model_parallel) axes.emplace(name, parameter->partition_dim);
  }
  ShardedStateDict result = make_sharded_tensors_for_checkpoint(
      own_state(), prefix, axes, sharded_offsets, sharding_group(),
      has_group ? metadata->dp_cp_group : groups->dp_cp);
  for (const auto& [name, child] : children_) {
    result.update(child->sharded_state_dict(prefix + name + ".", sharded_offsets, metadata));
  }
  return result;
}

std::shared_ptr<ProcessGroup> Module::sharding_group() const {
  return ProcessGroupCollection::use_mpu_process_groups()->tp;
}

void Module::register_child(const std::string& name, std::shared_ptr<Module> child) {
  if (!child) return;
  for (auto& [existing, module] : children_) {
    if (existing == name) {
      module = std::move(child);
      return;
    }
  }
  children_.emplace_back(name, std::move(child));
}

void Module::register_parameter(const std::string& name, Parameter* parameter) {
  parameters_.emplace_back(name, parameter);
}

std::ostream& operator<<(std::ostream& out, const Module& module) { return out << module.repr(); }

}  // namespace kitchen
