#include "kitchen/modules/quantized_bmm.h"

#include "kitchen/autograd/function.h"
#include "kitchen/modules/quantized_operand.h"
#include "kitchen/ops/gemm.h"

namespace kitchen {

namespace {

using modules::make_operand;
using modules::Operand;
using modules::operand_gemm;

/// Names of the two inputs, the gradient and the products, for logs and reports.
struct BmmNames {
  const char* a;
  const char* b;
  const char* g;
  const char* forward;
  const char* da;
  const char* db;
};

constexpr BmmNames kBmm1{"q", "k", "dS", "bmm1", "bmm1_dq", "bmm1_dk"};
constexpr BmmNames kBmm2{"p", "v", "dO", "bmm2", "bmm2_dp", "bmm2_dv"};

struct BmmCall {
  float alpha = 1.0f;
  bool is_bmm2 = false;
  std::shared_ptr<const QAttentionParams> params;
  std::string module;
};

/// alpha·x·yᵀ for x [B, m, r], y [B, n, r], both quantized along r as the call's quantizer says.
Tensor product(const BmmCall& call, const Tensor& x, bool x_is_gradient, const char* x_name,
               const Tensor& y, const char* y_name, const char* product_name, DType out) {
  if (!call.params) {
    ops::GemmOptions options;
    options.alpha = call.alpha;
    return ops::gemm(x, y, out, options);
  }
  const AttentionQuantizer& quantizer = call.params->get_quantizer(call.is_bmm2);
  const QuantizerParams& x_params = x_is_gradient ? quantizer.gradient() : quantizer.operand();
  const Operand qx = make_operand(x, x_params, quantizer.matmul(), /*columnwise=*/false,
                                  {call.module, x_name, product_name});
  const Operand qy = make_operand(y, quantizer.operand(), quantizer.matmul(), false,
                                  {call.module, y_name, product_name});
  return operand_gemm(qx, qy, out, quantizer.matmul(), call.alpha);
}

struct BmmFunction : autograd::Function<BmmFunction> {
  struct Saved {
    Tensor a;
    Tensor b;
    BmmCall call;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {a, b}; }
  };
  static constexpr const char* kName = "QuantizedBMM";

  static Tensor forward(autograd::FunctionContext<Saved>& ctx, const Tensor& a, const Tensor& b,
                        const BmmCall& call) {
    if (ctx.recording()) ctx.saved = {a, b, call};
    const BmmNames& names = call.is_bmm2 ? kBmm2 : kBmm1;
    return product(call, a, false, names.a, b.transpose(1, 2), names.b, names.forward, a.dtype());
  }

  static std::vector<Tensor> backward(autograd::FunctionContext<Saved>& ctx,
                                      const std::vector<Tensor>& grads) {
    const auto& [a, b, call] = ctx.saved;
    const BmmNames& names = call.is_bmm2 ? kBmm2 : kBmm1;
    const Tensor& g = grads[0];
    Tensor da;
    if (ctx.needs_grad(0)) {
      da = product(call, g, true, names.g, b, names.b, names.da, a.dtype());
    }
    Tensor db;
    if (ctx.needs_grad(1)) {
      db = product(call, g.transpose(1, 2), true, names.g, a.transpose(1, 2), names.a, names.db,
                   b.dtype())
               .transpose(1, 2);
    }
    return {da, db};
  }
};

}  // namespace

Tensor QuantizedBMM::apply(const Tensor& a, const Tensor& b, float alpha, bool is_bmm2,
                           bool grad_enabled, std::int64_t /*layer_number*/,
                           const std::shared_ptr<const QAttentionParams>& params,
                           const std::string& module) {
  const autograd::GradModeGuard guard(grad_enabled && autograd::grad_enabled());
  return BmmFunction::apply(a, b, BmmCall{alpha, is_bmm2, params, module});
}

}  // namespace kitchen
