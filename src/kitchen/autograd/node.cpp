#include "kitchen/autograd/node.h"

#include "kitchen/base/error.h"

#include <atomic>
#include <utility>

namespace kitchen::autograd {

namespace {

bool& grad_mode() {
  thread_local bool enabled = true;
  return enabled;
}

std::uint64_t next_sequence() {
  // Only the order within one thread matters, and it is ascending whatever other threads do.
  static std::atomic<std::uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed);
}

std::shared_ptr<VariableMeta> existing_meta(const Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  return std::static_pointer_cast<VariableMeta>(tensor.autograd_meta());
}

}  // namespace

Node::Node() : sequence_(next_sequence()) {}

std::shared_ptr<VariableMeta> variable_meta(const Tensor& tensor) {
  std::shared_ptr<VariableMeta> meta = existing_meta(tensor);
  if (!meta) {
    meta = std::make_shared<VariableMeta>();
    tensor.set_autograd_meta(meta);
  }
  return meta;
}

Edge edge_of(const Tensor& tensor) {
  const std::shared_ptr<VariableMeta> meta = existing_meta(tensor);
  if (!meta || !meta->requires_grad()) return {};
  if (meta->grad_fn) return {meta->grad_fn, meta->output_index, nullptr};
  return {nullptr, 0, meta};
}

void set_requires_grad(const Tensor& tensor, bool value) {
  if (!is_high_precision(tensor.dtype())) {
    throw ValueError("set_requires_grad: a tensor of dtype " + to_string(tensor.dtype()) +
                     " cannot require grad; use float32, float16 or bfloat16");
  }
  const std::shared_ptr<VariableMeta> meta = variable_meta(tensor);
  if (meta->grad_fn) throw ValueError("set_requires_grad: the tensor is no leaf; detach() it first");
  meta->set_requires_grad(value);
}

Tensor grad_of(const Tensor& tensor) {
  const std::shared_ptr<VariableMeta> meta = existing_meta(tensor);
  return meta ? meta->grad : Tensor();
}

void zero_grad(const Tensor& tensor) {
  if (const std::shared_ptr<VariableMeta> meta = existing_meta(tensor)) meta->grad = Tensor();
}

bool grad_enabled() { return grad_mode(); }

GradModeGuard::GradModeGuard(bool enabled) : former_(std::exchange(grad_mode(), enabled)) {}

GradModeGuard::~GradModeGuard() { grad_mode() = former_; }

}  // namespace kitchen::autograd
