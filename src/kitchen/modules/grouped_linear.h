#pragma once

#include "kitchen/modules/grouped_linear_function.h"
#include "kitchen/modules/linear.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kitchen::modules {

/// y and, if the caller adds them later, the experts' biases.
using GroupedLinearOutput = std::pair<Tensor, std::optional<std::vector<Tensor>>>;

/// Many linear layers of one shape and recipe in one call: row block i of the input meets weight i.
///
/// Parameters are `weight0`, `weight1`, ... [out_features, in_features] and `bias0`, ...
/// [out_features], local sizes as in Linear, which each expert is. Experts share nothing but the
/// call: each has its quantizers, its cached weight and its random streams, by its path
/// (expert_path).
class GroupedLinear : public Module, public HasQuantizationSteps {
 public:
  /// @throws ValueError unless num_gemms > 0.
  explicit GroupedLinear(std::int64_t num_gemms);

  std::int64_t num_gemms = 0;
  std::int64_t in_features = 0;
  std::int64_t out_features = 0;
  bool use_bias = false;
  int tp_size = 1;
  std::optional<std::string> parallel_mode;

  /// The parameters of local expert `i`, 0 <= i < num_gemms.
  [[nodiscard]] Parameter& weight(std::int64_t i) { return expert(i).weight; }
  [[nodiscard]] Parameter& bias(std::int64_t i) { return expert(i).bias; }

  /// Allocates no parameter if it throws.
  /// @param options of each expert; logical_name is the path of this layer.
  /// @param first_expert global index of local expert 0.
  /// @throws as Linear::init.
  void init(const LinearOptions& options, std::int64_t first_expert = 0);

  /// @param x [rows, in_features], rows sorted by expert; m_splits: rows of each expert, each 0 or
  /// more.
  /// @param is_first_microbatch as Linear::forward.
  /// @throws ValueError on sizes that do not fit, naming them.
  GroupedLinearOutput forward(const Tensor& x, const std::vector<std::int64_t>& m_splits,
                              std::optional<bool> is_first_microbatch);

  /// As Linear, for every expert.
  void set_tensor_parallel_group(const std::shared_ptr<ProcessGroup>& group);
  void reset_parameters();
  void finish_quantization_step() override;

  /// What the quantizers of all experts remember (encode_expert_states), as a uint8 tensor; empty
  /// if nothing.
  [[nodiscard]] Tensor get_extra_state() const;
  /// Puts a state back. An empty one changes nothing.
  /// @throws RuntimeError "Unsupported checkpoint format" naming what was found, if it does not
  /// fit.
  void set_extra_state(const Tensor& state);

  [[nodiscard]] std::string class_name() const override { return "GroupedLinear"; }

 protected:
  [[nodiscard]] Linear& expert(std::int64_t i) const;
  [[nodiscard]] std::vector<StateDict::Item> extra_state() const override;
  void load_extra_state(const std::string& name, const Tensor& value) override;
  [[nodiscard]] std::string extra_state_mismatch(const Tensor& value) const override;
  /// Merges `_extra_state`, `_extra_state1`, ... of a distributed checkpoint, one an expert, unless
  /// one is missing.
  void adapt_state(const std::string& prefix, StateDict& state) const override;
  [[nodiscard]] std::shared_ptr<ProcessGroup> sharding_group() const override;

 private:
  std::vector<std::unique_ptr<Linear>>
      experts_;  ///< no children: their parameters are this layer's
};

}  // namespace kitchen::modules
