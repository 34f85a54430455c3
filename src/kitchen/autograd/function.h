#pragma once

#include "kitchen/autograd/node.h"
#include "kitchen/base/error.h"

#include <type_traits>
#include <utility>

namespace kitchen::autograd {

/// What a Function's forward leaves for its backward.
///
/// @tparam Saved struct of the Function, with `std::vector<Tensor> tensors() const`: everything that is kept
///               for backward stands in one place, so activation memory can be summed.
template <class Saved>
class FunctionContext {
 public:
  Saved saved;

  /// True if the gradient of tensor input `i` (counting tensors only) is wanted.
  [[nodiscard]] bool needs_grad(std::size_t i) const { return (*edges_)[i].wanted(); }
  /// The leaf behind tensor input `i`, or null: a fused wgrad adds into its main_grad.
  [[nodiscard]] const std::shared_ptr<VariableMeta>& leaf(std::size_t i) const {
    return (*edges_)[i].leaf;
  }
  /// False when nothing is recorded: forward may skip work that only backward needs.
  [[nodiscard]] bool recording() const { return recording_; }

 private:
  template <class F>
  friend class Function;

  const std::vector<Edge>* edges_ = nullptr;
  bool recording_ = false;
};

/// The tape's entry of one call of F. A template of its own, since inside the base class F is incomplete.
template <class F>
struct RecordedCall : Node {
  FunctionContext<typename F::Saved> context;
  bool released = false;

  std::vector<Tensor> backward(std::vector<Tensor> grad_outputs) override {
    if (released) {
      throw RuntimeError(std::string(F::kName) +
                         ": backward was run already and its saved tensors are freed; run forward "
                         "again");
    }
    return F::backward(context, grad_outputs);
  }
  void release() override {
    released = true;
    context.saved = typename F::Saved();
  }
  [[nodiscard]] std::string name() const override { return F::kName; }
  [[nodiscard]] std::vector<Tensor> saved_tensors() const override {
    return context.saved.tensors();
  }
};

/// Base of differentiable operations. A derived class F has
///   struct Saved { ...; std::vector<Tensor> tensors() const; };
///   static constexpr const char* kName;
///   static Tensor (or std::vector<Tensor>) forward(FunctionContext<Saved>&, args...);
///   static std::vector<Tensor> backward(FunctionContext<Saved>&, const std::vector<Tensor>& grads);
/// `backward` returns one gradient for each Tensor among args, in order; undefined where none is wanted. A
/// std::vector<Tensor> among args counts as that many tensors.
/// forward sees detached handles and runs with recording off, so its inner calls leave no trace.
template <class F>
class Function {
 public:
  template <class... Args>
  static auto apply(const Args&... args) {
    auto node = std::make_shared<RecordedCall<F>>();
    bool wanted = false;
    if (grad_enabled()) {
      (append_edge(*node, args), ...);
      for (const Edge& edge : node->edges) wanted = wanted || edge.wanted();
    } else {
      (append_empty_edge(*node, args), ...);
    }
    node->context.edges_ = &node->edges;
    node->context.recording_ = wanted;
    auto result = [&] {
      const NoGradGuard guard;
      return F::forward(node->context, detached(args)...);
    }();
    if (wanted) attach(node, result);
    return result;
  }

 private:
  template <class T>
  static constexpr bool kIsTensor = std::is_base_of_v<Tensor, T>;
  template <class T>
  static constexpr bool kIsTensors = std::is_same_v<std::vector<Tensor>, T>;

  template <class T>
  static void append_edge(Node& node, const T& arg) {
    if constexpr (kIsTensor<T>) node.edges.push_back(edge_of(arg));
    if constexpr (kIsTensors<T>) {
      for (const Tensor& tensor : arg) node.edges.push_back(edge_of(tensor));
    }
  }
  template <class T>
  static void append_empty_edge(Node& node, [[maybe_unused]] const T& arg) {
    if constexpr (kIsTensor<T>) node.edges.emplace_back();
    if constexpr (kIsTensors<T>) node.edges.resize(node.edges.size() + arg.size());
  }

  template <class T>
  static decltype(auto) detached(const T& arg) {
    if constexpr (kIsTensor<T>) {
      return arg.defined() ? arg.detach() : Tensor();
    } else if constexpr (kIsTensors<T>) {
      std::vector<Tensor> handles;
      for (const Tensor& tensor : arg) handles.push_back(detached(tensor));
      return handles;
    } else {
      return (arg);
    }
  }

  static void attach_one(const std::shared_ptr<RecordedCall<F>>& node, Tensor& output,
                         std::size_t index) {
    if (!output.defined() || !is_high_precision(output.dtype())) return;
    output = output.detach();  // an output may be an input's handle
    auto meta = std::make_shared<VariableMeta>();
    meta->set_requires_grad(true);
    meta->grad_fn = node;
    meta->output_index = index;
    output.set_autograd_meta(std::move(meta));
  }
  static void attach(const std::shared_ptr<RecordedCall<F>>& node, Tensor& output) {
    attach_one(node, output, 0);
  }
  static void attach(const std::shared_ptr<RecordedCall<F>>& node, std::vector<Tensor>& outputs) {
    node->num_outputs = outputs.size();
    for (std::size_t i = 0; i < outputs.size(); ++i) attach_one(node, outputs[i], i);
  }
};

}  // namespace kitchen::autograd
