#include "kitchen/autograd/backward.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/elementwise.h"

#include <functional>
#include <map>
#include <set>
#include <utility>

namespace kitchen::autograd {

namespace {

/// Nodes that wait for their turn, newest first, with the gradients that have arrived.
using Pending = std::map<std::uint64_t, std::pair<std::shared_ptr<Node>, std::vector<Tensor>>,
                         std::greater<>>;

/// A leaf's gradient has storage of its own: what backward functions return may be shared by several inputs
/// or be a view, and clipping works in place.
Tensor own_copy(const Tensor& grad) {
  const Tensor copy = Tensor::empty(grad.context(), grad.shape(), grad.dtype());
  ops::copy_into(grad, copy);
  return copy;
}

void accumulate_leaf(VariableMeta& leaf, const Tensor& grad) {
  if (leaf.grad_added_to_main_grad) {
    throw RuntimeError(
        "backward: a parameter got a gradient after a fused wgrad had added its own to main_grad; "
        "do not mix fused and plain uses of one parameter");
  }
  if (leaf.main_grad.defined()) {
    ops::add_inplace(leaf.main_grad, grad);
  } else {
    leaf.grad = leaf.grad.defined() ? ops::add(leaf.grad, grad) : own_copy(grad);
  }
}

void deliver(Pending& pending, const Edge& edge, const Tensor& grad) {
  if (edge.leaf) {
    if (grad.defined()) accumulate_leaf(*edge.leaf, grad);
    if (edge.leaf->on_accumulated) edge.leaf->on_accumulated();
    return;
  }
  auto& [node, grads] = pending[edge.node->sequence()];
  if (!node) {
    node = edge.node;
    grads.resize(node->num_outputs);
  }
  if (!grad.defined()) return;
  Tensor& slot = grads[edge.output_index];
  slot = slot.defined() ? ops::add(slot, grad) : grad;
}

bool any_defined(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    if (tensor.defined()) return true;
  }
  return false;
}

Tensor seed_gradient(const Tensor& root, const Tensor& grad) {
  if (!grad.defined()) {
    if (root.numel() != 1) {
      throw ValueError("backward: root has shape " + to_string(root.shape()) +
                       "; give its gradient, or reduce it to one element");
    }
    Tensor ones = Tensor::empty(root.context(), root.shape(), root.dtype());
    ops::fill_inplace(ones, 1.0f);
    return ones;
  }
  if (grad.shape() != root.shape()) {
    throw ValueError("backward: gradient of shape " + to_string(grad.shape()) +
                     " for a root of shape " + to_string(root.shape()));
  }
  if (grad.dtype() != root.dtype()) {
    throw TypeError("backward: gradient of dtype " + to_string(grad.dtype()) + " for a root of dtype " +
                    to_string(root.dtype()));
  }
  return grad.detach();
}

}  // namespace

void backward(const Tensor& root, const Tensor& grad) {
  const Edge start = edge_of(root);
  if (!start.wanted()) {
    throw ValueError("backward: root does not require grad: nothing that led to it does, or it was "
                     "computed under a NoGradGuard");
  }
  Pending pending;
  const NoGradGuard guard;
  deliver(pending, start, seed_gradient(root, grad));
  while (!pending.empty()) {
    auto [node, grads] = std::move(pending.begin()->second);
    pending.erase(pending.begin());
    std::vector<Tensor> input_grads(node->edges.size());
    if (any_defined(grads)) input_grads = node->backward(std::move(grads));
    if (input_grads.size() != node->edges.size()) {
      throw RuntimeError(node->name() + ": backward returned " +
                         std::to_string(input_grads.size()) + " gradients for " +
                         std::to_string(node->edges.size()) + " tensor inputs");
    }
    node->release();
    for (std::size_t i = 0; i < node->edges.size(); ++i) {
      if (!node->edges[i].wanted()) continue;
      deliver(pending, node->edges[i], input_grads[i]);
      input_grads[i] = Tensor();  // free early: the next nodes may need the memory
    }
    node->edges.clear();  // unlink, so that a long chain is not freed recursively
  }
}

std::vector<TapeEntry> describe_tape(const Tensor& root) {
  std::map<std::uint64_t, std::shared_ptr<Node>, std::greater<>> found;
  std::vector<std::shared_ptr<Node>> open;
  if (const Edge start = edge_of(root); start.node) open.push_back(start.node);
  while (!open.empty()) {
    const std::shared_ptr<Node> node = open.back();
    open.pop_back();
    if (!found.emplace(node->sequence(), node).second) continue;
    for (const Edge& edge : node->edges) {
      if (edge.node) open.push_back(edge.node);
    }
  }
  std::map<std::uint64_t, std::size_t> index;
  for (const auto& [sequence, node] : found) index.emplace(sequence, index.size());
  std::vector<TapeEntry> entries;
  std::set<const void*> counted;
  for (const auto& [sequence, node] : found) {
    TapeEntry entry;
    entry.name = node->name();
    for (const Tensor& tensor : node->saved_tensors()) {
      if (tensor.defined() && counted.insert(tensor.raw_data()).second) {
        entry.saved_bytes += tensor.nbytes();
      }
    }
    for (const Edge& edge : node->edges) {
      if (edge.node) entry.inputs.push_back(index.at(edge.node->sequence()));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace kitchen::autograd
