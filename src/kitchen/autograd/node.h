#pragma once

#include "kitchen/base/tensor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kitchen::autograd {

class Node;

/// State of a tensor that takes part in differentiation. A *leaf* (parameter, input) has no `grad_fn` and
/// collects its gradient; any other tensor names the node that made it.
class VariableMeta : public AutogradMeta {
 public:
  [[nodiscard]] bool requires_grad() const override { return requires_grad_; }
  void set_requires_grad(bool value) { requires_grad_ = value; }

  std::shared_ptr<Node> grad_fn;   ///< null for a leaf
  std::size_t output_index = 0;    ///< which output of grad_fn this tensor is

  Tensor grad;                     ///< leaf: sum of the gradients since the last zero_grad
  Tensor main_grad;                ///< leaf, optional, float32: takes the gradient instead of `grad`
  bool grad_added_to_main_grad = false;  ///< a fused wgrad GEMM has already added it
  /// Leaf, optional: called after each accumulation, e.g. to start a gradient bucket's reduction.
  std::function<void()> on_accumulated;

 private:
  bool requires_grad_ = false;
};

/// Where the gradient of one input goes: to an output of the node that made it, or to a leaf.
struct Edge {
  std::shared_ptr<Node> node;          ///< null: leaf or no gradient wanted
  std::size_t output_index = 0;
  std::shared_ptr<VariableMeta> leaf;  ///< null unless the input is a leaf that requires grad

  [[nodiscard]] bool wanted() const { return node != nullptr || leaf != nullptr; }
};

/// One recorded call: knows its backward and where the results go.
class Node {
 public:
  Node();
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Gradients of the inputs from gradients of the outputs; undefined stands for zero on both sides.
  virtual std::vector<Tensor> backward(std::vector<Tensor> grad_outputs) = 0;
  /// Drops what was saved; a second backward through this node is an error.
  virtual void release() = 0;
  [[nodiscard]] virtual std::string name() const = 0;
  /// Tensors kept alive for backward (inputs that the model holds anyway are among them).
  [[nodiscard]] virtual std::vector<Tensor> saved_tensors() const = 0;

  std::vector<Edge> edges;       ///< one for each tensor input
  std::size_t num_outputs = 1;
  /// Creation order. An input's node is always older, so descending order is a topological order.
  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }

 private:
  std::uint64_t sequence_;
};

/// The meta of `tensor`, made if it has none.
std::shared_ptr<VariableMeta> variable_meta(const Tensor& tensor);

/// The edge that the gradient with respect to `tensor` takes; empty where none is wanted.
Edge edge_of(const Tensor& tensor);

/// Marks `tensor` as a leaf that wants (or does not want) a gradient.
/// @throws ValueError if the dtype is not float32, float16 or bfloat16, or if it is not a leaf.
void set_requires_grad(const Tensor& tensor, bool value = true);

/// The collected gradient of a leaf; undefined if there is none.
Tensor grad_of(const Tensor& tensor);
void zero_grad(const Tensor& tensor);

/// False inside a NoGradGuard: calls record nothing and save nothing.
bool grad_enabled();

/// Sets grad_enabled for the lifetime of the guard, on this thread.
class GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled);
  ~GradModeGuard();
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool former_;
};

class NoGradGuard : public GradModeGuard {
 public:
  NoGradGuard() : GradModeGuard(false) {}
};

}  // namespace kitchen::autograd
