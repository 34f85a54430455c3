#pragma once

#include "kitchen/modules/parameter.h"
#include "kitchen/modules/state_dict.h"
#include "kitchen/parallel/sharded_tensor.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kitchen {

/// A tree of layers. Children and parameters are registered under names; dotted paths
/// (`decoder.layers.0.mlp.linear_fc1`) address them, with decimal indices for lists.
class Module : public std::enable_shared_from_this<Module> {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  bool training = true;
  /// Set training of this module and of all below.
  void train(bool mode = true);
  void eval() { train(false); }

  [[nodiscard]] std::vector<std::pair<std::string, std::shared_ptr<Module>>> named_children() const;
  /// This module ("") and all below, pre-order. A handle does not own a module that no shared_ptr owns.
  [[nodiscard]] std::vector<std::pair<std::string, std::shared_ptr<Module>>> named_modules() const;
  /// Allocated parameters of this module and of all below. A shared parameter appears once.
  [[nodiscard]] std::vector<std::pair<std::string, Parameter*>> named_parameters() const;

  /// Parameters and extra state, names prefixed.
  [[nodiscard]] StateDict state_dict(const std::string& prefix = "") const;
  /// Copies values into the parameters, converting between float32, float16 and bfloat16.
  ///
  /// Everything is checked before anything is copied. A missing or empty `_extra_state` is never an error: the
  /// quantizers of such layers stay as they are, which one line of the log tells.
  /// @throws RuntimeError listing all missing (strict) and unexpected (strict) names and all tensors of another
  ///         shape, of a dtype that is no high-precision one, or of another context.
  void load_state_dict(const StateDict& state, bool strict = true);

  /// Parameters of this module and below as shards of the whole model's; keys are `prefix` + path.
  virtual ShardedStateDict sharded_state_dict(const std::string& prefix = "",
                                              const ShardedOffsets& sharded_offsets = {},
                                              const Metadata* metadata = nullptr);

  /// Name of the dynamic class, as the documentation spells it.
  [[nodiscard]] virtual std::string class_name() const = 0;
  /// `ClassName()` unless a class says more.
  [[nodiscard]] virtual std::string repr() const { return class_name() + "()"; }

 protected:
  void register_child(const std::string& name, std::shared_ptr<Module> child);
  /// `parameter` is a member of the registering module and may still be undefined.
  void register_parameter(const std::string& name, Parameter* parameter);
  /// State besides parameters: pairs of name and tensor.
  [[nodiscard]] virtual std::vector<StateDict::Item> extra_state() const { return {}; }
  /// Receives what extra_state gave when it was saved.
  virtual void load_extra_state(const std::string& /*name*/, const Tensor& /*value*/) {}
  /// Called on a copy of what load_state_dict got, before it is read: a module whose entries have other names
  /// in some checkpoints gives them their own. `prefix` ends in a dot, or is empty.
  virtual void adapt_state(const std::string& /*prefix*/, StateDict& /*state*/) const {}
  /// Why load_extra_state would refuse `value`; empty if it would not.
  [[nodiscard]] virtual std::string extra_state_mismatch(const Tensor& /*value*/) const { return ""; }

  [[nodiscard]] const std::vector<std::pair<std::string, Parameter*>>& own_parameters() const {
    return parameters_;
  }
  /// Own parameters and extra state, unprefixed: what sharded_state_dict of a leaf starts from.
  [[nodiscard]] std::vector<StateDict::Item> own_state() const;
  /// The tensor-parallel group over which the own parameters are split; the default one unless a class has
  /// its own.
  [[nodiscard]] virtual std::shared_ptr<ProcessGroup> sharding_group() const;

 private:
  void collect_state(const std::string& prefix, StateDict& state) const;
  [[nodiscard]] std::string extra_state_problems(const StateDict& state) const;

  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  std::vector<std::pair<std::string, Parameter*>> parameters_;
};

std::ostream& operator<<(std::ostream& out, const Module& module);

}  // namespace kitchen
