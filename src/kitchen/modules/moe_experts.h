#pragma once

#include "kitchen/modules/module.h"
#include "kitchen/modules/module_spec.h"

/// @file  moe_experts.h
/// @brief The expert classes that spec providers name. The types exist so that a provider can answer;
///        building one throws NotImplementedError.

namespace kitchen {

/// One MLP for each local expert, one after the other.
class SequentialMLP : public Module {
 public:
  [[nodiscard]] std::string class_name() const override { return "SequentialMLP"; }
  static ModuleInfo module_info();
};

/// Two grouped linears for all local experts. Megatron's name; it needs no Transformer Engine.
class TEGroupedMLP : public Module {
 public:
  [[nodiscard]] std::string class_name() const override { return "TEGroupedMLP"; }
  static ModuleInfo module_info();
};

/// The legacy grouped form.
class GroupedMLP : public Module {
 public:
  [[nodiscard]] std::string class_name() const override { return "GroupedMLP"; }
  static ModuleInfo module_info();
};

}  // namespace kitchen
