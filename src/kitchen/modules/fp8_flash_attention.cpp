#include "kitchen/modules/fp8_flash_attention.h"

#include "kitchen/autograd/function.h"
#include "kitchen/modules/quantized_operand.h"
#include "kitchen/ops/flash_attention_fp8.h"

namespace kitchen::modules {

namespace {

/// Codes of x [s, b, heads, d] as [b, heads, s, d]: a slice, and so a scale, for each head.
QuantizedMatrix quantize_heads(const Tensor& x, const char* format, const OperandInfo& info) {
  QuantizerParams params;
  params.format = format;
  params.scaling = Scaling::tensor_current;
  MatmulParams matmul;
  matmul.quantized = true;
  return *make_operand(x.permute({1, 2, 0, 3}), params, matmul, /*columnwise=*/false, info)
              .quantized;
}

struct Fp8FlashAttention : autograd::Function<Fp8FlashAttention> {
  struct Saved {
    QuantizedMatrix q;
    QuantizedMatrix k;
    QuantizedMatrix v;
    Tensor o;
    Tensor lse;
    ops::FlashAttentionOptions options;
    std::string module;
    [[nodiscard]] std::vector<Tensor> tensors() const {
      return {q.codes, q.scale_inv, k.codes, k.scale_inv, v.codes, v.scale_inv, o, lse};
    }
  };
  static constexpr const char* kName = "Fp8FlashAttention";

  static Tensor forward(autograd::FunctionContext<Saved>& ctx, const Tensor& q, const Tensor& k,
                        const Tensor& v, const ops::FlashAttentionOptions& options,
                        const std::string& module) {
    const QuantizedMatrix q_codes = quantize_heads(q, "e4m3", {module, "q", "qk"});
    const QuantizedMatrix k_codes = quantize_heads(k, "e4m3", {module, "k", "qk"});
    const QuantizedMatrix v_codes = quantize_heads(v, "e4m3", {module, "v", "pv"});
    const ops::FlashAttentionResult result =
        ops::flash_attention_fp8_forward(q_codes, k_codes, v_codes, q.dtype(), options);
    if (ctx.recording()) {
      ctx.saved = {q_codes, k_codes, v_codes, result.o, result.lse, options, module};
    }
    return result.o;
  }

  static std::vector<Tensor> backward(autograd::FunctionContext<Saved>& ctx,
                                      const std::vector<Tensor>& grads) {
    const Saved& s = ctx.saved;
    const QuantizedMatrix dout = quantize_heads(grads[0], "e5m2", {s.module, "dO", "dp"});
    ops::FlashAttentionGradients result = ops::flash_attention_fp8_backward(
        grads[0], dout, s.q, s.k, s.v, s.o, s.lse, s.options);
    return {result.dq, result.dk, result.dv};
  }
};

}  // namespace

Tensor fp8_flash_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                           const ops::FlashAttentionOptions& options, const std::string& module) {
  return Fp8FlashAttention::apply(q, k, v, options, module);
}

}  // namespace kitchen::modules
