#include "kitchen/autograd/math_functions.h"

#include "kitchen/autograd/function.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/gemm.h"

namespace kitchen::autograd {

namespace {

struct DTypesSaved {
  DType a = DType::float32;
  DType b = DType::float32;
  [[nodiscard]] std::vector<Tensor> tensors() const { return {}; }
};

struct Add : Function<Add> {
  using Saved = DTypesSaved;
  static constexpr const char* kName = "Add";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& a, const Tensor& b) {
    ctx.saved = {a.dtype(), b.dtype()};
    return ops::add(a, b);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    return {ops::cast(grads[0], ctx.saved.a), ops::cast(grads[0], ctx.saved.b)};
  }
};

struct Multiply : Function<Multiply> {
  struct Saved {
    Tensor a;
    Tensor b;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {a, b}; }
  };
  static constexpr const char* kName = "Multiply";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& a, const Tensor& b) {
    if (ctx.recording()) ctx.saved = {a, b};
    return ops::multiply(a, b);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    const auto& [a, b] = ctx.saved;
    return {ctx.needs_grad(0) ? ops::cast(ops::multiply(grads[0], b), a.dtype()) : Tensor(),
            ctx.needs_grad(1) ? ops::cast(ops::multiply(grads[0], a), b.dtype()) : Tensor()};
  }
};

struct Scale : Function<Scale> {
  struct Saved {
    float factor = 1.0f;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {}; }
  };
  static constexpr const char* kName = "Scale";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& x, float factor) {
    ctx.saved.factor = factor;
    return ops::scale(x, factor);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    return {ops::scale(grads[0], ctx.saved.factor)};
  }
};

struct AddBias : Function<AddBias> {
  using Saved = DTypesSaved;
  static constexpr const char* kName = "AddBias";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& x, const Tensor& bias) {
    ctx.saved = {x.dtype(), bias.dtype()};
    return ops::add_bias(x, bias);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    return {grads[0],
            ctx.needs_grad(1) ? ops::cast(ops::sum_rows(grads[0]), ctx.saved.b) : Tensor()};
  }
};

struct Cast : Function<Cast> {
  using Saved = DTypesSaved;
  static constexpr const char* kName = "Cast";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& x, DType dtype) {
    ctx.saved.a = x.dtype();
    return ops::cast(x, dtype);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    return {ops::cast(grads[0], ctx.saved.a)};
  }
};

struct Sum : Function<Sum> {
  struct Saved {
    Shape shape;
    DType dtype = DType::float32;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {}; }
  };
  static constexpr const char* kName = "Sum";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& x) {
    ctx.saved = {x.shape(), x.dtype()};
    return ops::sum_all(ops::contiguous(x));
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    // The incoming gradient has one element; a zero-stride view repeats it without reading it on the host.
    const Shape& shape = ctx.saved.shape;
    const Tensor repeated = grads[0].as_strided(shape, Shape(shape.size(), 0), 0);
    const Tensor dx = Tensor::empty(grads[0].context(), shape, ctx.saved.dtype);
    ops::copy_into(repeated, dx);
    return {dx};
  }
};

struct MatmulNT : Function<MatmulNT> {
  struct Saved {
    Tensor a;
    Tensor b;
    float alpha = 1.0f;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {a, b}; }
  };
  static constexpr const char* kName = "MatmulNT";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& a, const Tensor& b, float alpha) {
    if (ctx.recording()) ctx.saved = {a, b, alpha};
    ops::GemmOptions options;
    options.alpha = alpha;
    return ops::gemm(a, b, a.dtype(), options);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    const auto& [a, b, alpha] = ctx.saved;
    ops::GemmOptions options;
    options.alpha = alpha;
    const Tensor& g = grads[0];
    return {ctx.needs_grad(0) ? ops::gemm(g, b.transpose(-2, -1), a.dtype(), options) : Tensor(),
            ctx.needs_grad(1)
                ? ops::gemm(g.transpose(-2, -1), a.transpose(-2, -1), b.dtype(), options)
                : Tensor()};
  }
};

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return Add::apply(a, b); }
Tensor multiply(const Tensor& a, const Tensor& b) { return Multiply::apply(a, b); }
Tensor scale(const Tensor& x, float factor) { return Scale::apply(x, factor); }
Tensor add_bias(const Tensor& x, const Tensor& bias) { return AddBias::apply(x, bias); }
Tensor cast(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : Cast::apply(x, dtype); }
Tensor sum(const Tensor& x) { return Sum::apply(x); }
Tensor matmul_nt(const Tensor& a, const Tensor& b, float alpha) {
  return MatmulNT::apply(a, b, alpha);
}

}  // namespace kitchen::autograd
