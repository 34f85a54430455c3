#pragma once

#include "kitchen/autograd/node.h"
#include "kitchen/base/tensor.h"

namespace kitchen {

/// A leaf tensor that a module owns and an optimizer updates. Undefined until it is allocated.
///
/// The attributes are read by gradient finalisation and checkpointing, under Megatron's names.
class Parameter : public Tensor {
 public:
  Parameter() = default;
  explicit Parameter(const Tensor& tensor) : Tensor(tensor) { autograd::set_requires_grad(*this); }

  /// Reduce the gradient over data-parallel ranks; false: over expert-data-parallel ranks.
  bool allreduce = true;
  /// Also all-reduce the gradient over the tensor-parallel group: each rank saw only its tokens.
  bool sequence_parallel = false;
  /// The parameter is split over the tensor-parallel group along `partition_dim`.
  bool tensor_model_parallel = false;
  int partition_dim = -1;
  std::int64_t partition_stride = 1;

  /// float32 accumulator of the gradient; undefined if none was set.
  [[nodiscard]] Tensor main_grad() const { return autograd::variable_meta(*this)->main_grad; }
  void set_main_grad(const Tensor& main_grad) const {
    autograd::variable_meta(*this)->main_grad = main_grad;
  }
  [[nodiscard]] bool grad_added_to_main_grad() const {
    return autograd::variable_meta(*this)->grad_added_to_main_grad;
  }
  void set_grad_added_to_main_grad(bool added) const {
    autograd::variable_meta(*this)->grad_added_to_main_grad = added;
  }
  [[nodiscard]] Tensor grad() const { return autograd::grad_of(*this); }
};

}  // namespace kitchen
