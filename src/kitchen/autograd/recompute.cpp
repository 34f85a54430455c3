#include "kitchen/autograd/recompute.h"

#include "kitchen/autograd/backward.h"
#include "kitchen/base/error.h"

#include <utility>

namespace kitchen::autograd {

namespace {

using SegmentFn = std::function<Tensor(const std::vector<Tensor>&)>;

/// Puts the present state back at the end of the scope, also when the segment throws.
class StateGuard {
 public:
  explicit StateGuard(const CaptureState& capture) {
    if (capture) put_back_ = capture();
  }
  ~StateGuard() {
    if (put_back_) put_back_();
  }
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;

 private:
  std::function<void()> put_back_;
};

/// A node of its own rather than a Function: the number of inputs is only known at run time.
struct RecomputeNode : Node {
  SegmentFn fn;
  std::vector<Tensor> inputs;  // detached
  CaptureState capture;
  std::function<void()> restore_first;
  bool released = false;

  std::vector<Tensor> backward(std::vector<Tensor> grad_outputs) override {
    if (released) throw RuntimeError("recompute: backward was run already; run forward again");
    std::vector<Tensor> leaves;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      leaves.push_back(inputs[i].defined() ? inputs[i].detach() : Tensor());
      if (edges[i].wanted()) set_requires_grad(leaves[i]);
    }
    {
      const StateGuard present(capture);
      if (restore_first) restore_first();
      const GradModeGuard guard(true);
      const Tensor output = fn(leaves);
      // A segment in which nothing wants a gradient ends here, as it would without recompute.
      if (output.requires_grad()) kitchen::autograd::backward(output, grad_outputs[0]);
    }
    std::vector<Tensor> grads;
    for (const Tensor& leaf : leaves) grads.push_back(grad_of(leaf));
    return grads;
  }
  void release() override {
    released = true;
    inputs.clear();
    fn = nullptr;
  }
  [[nodiscard]] std::string name() const override { return "Recompute"; }
  [[nodiscard]] std::vector<Tensor> saved_tensors() const override { return inputs; }
};

}  // namespace

Tensor recompute(const SegmentFn& fn, const std::vector<Tensor>& inputs,
                 const CaptureState& capture) {
  if (!grad_enabled()) return fn(inputs);
  auto node = std::make_shared<RecomputeNode>();
  for (const Tensor& input : inputs) {
    node->edges.push_back(edge_of(input));
    node->inputs.push_back(input.defined() ? input.detach() : Tensor());
  }
  node->fn = fn;
  node->capture = capture;
  if (capture) node->restore_first = capture();
  Tensor output;
  {
    const NoGradGuard guard;
    output = fn(node->inputs);
  }
  output = output.detach();
  // Parameters inside `fn` may want gradients even when no input does: the node is always attached.
  auto meta = std::make_shared<VariableMeta>();
  meta->set_requires_grad(true);
  meta->grad_fn = node;
  output.set_autograd_meta(std::move(meta));
  return output;
}

}  // namespace kitchen::autograd
