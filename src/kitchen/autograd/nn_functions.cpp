#include "kitchen/autograd/nn_functions.h"

#include "kitchen/autograd/function.h"
#include "kitchen/ops/cross_entropy.h"
#include "kitchen/ops/dropout.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/ops/embedding.h"
#include "kitchen/ops/rotary.h"

#include <optional>

namespace kitchen::autograd {

namespace {

struct Norm : Function<Norm> {
  struct Saved {
    Tensor x;
    Tensor gamma;
    Tensor mean;
    Tensor rstd;
    std::optional<DType> beta_dtype;
    ops::NormOptions options;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {x, gamma, mean, rstd}; }
  };
  static constexpr const char* kName = "Norm";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& x, const Tensor& gamma,
                        const Tensor& beta, const ops::NormOptions& options) {
    ops::NormResult result = ops::norm_forward(x, gamma, beta, options);
    if (ctx.recording()) {
      ctx.saved = {x, gamma, result.mean, result.rstd, std::nullopt, options};
      if (beta.defined()) ctx.saved.beta_dtype = beta.dtype();
    }
    return result.y;
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    const Saved& s = ctx.saved;
    ops::NormGradients result =
        ops::norm_backward(ops::contiguous(grads[0]), s.x, s.gamma, s.mean, s.rstd, s.options);
    return {result.dx, ops::cast(result.dgamma, s.gamma.dtype()),
            s.beta_dtype ? ops::cast(result.dbeta, *s.beta_dtype) : Tensor()};
  }
};

struct BiasActivation : Function<BiasActivation> {
  struct Saved {
    Tensor x;
    Tensor bias;
    ops::ActivationOptions options;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {x, bias}; }
  };
  static constexpr const char* kName = "BiasActivation";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& x, const Tensor& bias,
                        const ops::ActivationOptions& options) {
    if (ctx.recording()) ctx.saved = {x, bias, options};
    return ops::activation_forward(x, bias, options);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    const Saved& s = ctx.saved;
    const Tensor dx =
        ops::activation_backward(ops::contiguous(grads[0]), s.x, s.bias, s.options);
    if (!s.bias.defined()) return {dx, Tensor()};
    return {dx, ctx.needs_grad(1) ? ops::cast(ops::sum_rows(dx), s.bias.dtype()) : Tensor()};
  }
};

struct Softmax : Function<Softmax> {
  struct Saved {
    Tensor probs;
    Tensor mask;
    ops::SoftmaxOptions options;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {probs, mask}; }
  };
  static constexpr const char* kName = "Softmax";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& scores, const Tensor& mask,
                        const ops::SoftmaxOptions& options) {
    Tensor probs = ops::softmax_forward(scores, mask, options);
    if (ctx.recording()) ctx.saved = {probs, mask, options};
    return probs;
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    const Saved& s = ctx.saved;
    return {ops::softmax_backward(ops::contiguous(grads[0]), s.probs, s.mask, s.options), Tensor()};
  }
};

struct RandomSaved {
  float p = 0.0f;
  Rng rng;
  DType x_dtype = DType::float32;
  DType bias_dtype = DType::float32;
  bool has_bias = false;
  [[nodiscard]] std::vector<Tensor> tensors() const { return {}; }
};

struct Dropout : Function<Dropout> {
  using Saved = RandomSaved;
  static constexpr const char* kName = "Dropout";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& x, float p, const Rng& rng) {
    ctx.saved.p = p;
    ctx.saved.rng = rng;
    return ops::dropout(x, p, rng);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    return {ops::dropout(ops::contiguous(grads[0]), ctx.saved.p, ctx.saved.rng)};
  }
};

struct BiasDropoutAdd : Function<BiasDropoutAdd> {
  using Saved = RandomSaved;
  static constexpr const char* kName = "BiasDropoutAdd";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& x, const Tensor& bias,
                        const Tensor& residual, float p, const Rng& rng) {
    ctx.saved.p = p;
    ctx.saved.rng = rng;
    ctx.saved.x_dtype = x.dtype();
    ctx.saved.has_bias = bias.defined();
    if (bias.defined()) ctx.saved.bias_dtype = bias.dtype();
    return ops::bias_dropout_add(x, bias, residual, p, rng);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    const Saved& s = ctx.saved;
    const Tensor dropped =
        s.p > 0.0f ? ops::dropout(ops::contiguous(grads[0]), s.p, s.rng) : grads[0];
    const Tensor dx = ops::cast(dropped, s.x_dtype);
    const bool wants_bias = s.has_bias && ctx.needs_grad(1);
    return {dx, wants_bias ? ops::cast(ops::sum_rows(dx), s.bias_dtype) : Tensor(), grads[0]};
  }
};

struct Embedding : Function<Embedding> {
  struct Saved {
    Tensor ids;
    Shape table_shape;
    DType table_dtype = DType::float32;
    std::int64_t first_id = 0;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {ids}; }
  };
  static constexpr const char* kName = "Embedding";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& ids, const Tensor& table,
                        std::int64_t first_id) {
    if (ctx.recording()) ctx.saved = {ids, table.shape(), table.dtype(), first_id};
    return ops::embedding_forward(ids, table, first_id);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    const Saved& s = ctx.saved;
    const std::shared_ptr<VariableMeta>& leaf = ctx.leaf(1);
    const Tensor dy = ops::contiguous(grads[0]);
    if (leaf && leaf->main_grad.defined()) {
      // Straight into the accumulator: a second [vocab, hidden] buffer would be the largest of the step.
      ops::embedding_backward_into(dy, s.ids, leaf->main_grad, s.first_id);
      return {Tensor(), Tensor()};
    }
    const Tensor dtable = Tensor::zeros(dy.context(), s.table_shape, DType::float32);
    ops::embedding_backward_into(dy, s.ids, dtable, s.first_id);
    return {Tensor(), ops::cast(dtable, s.table_dtype)};
  }
};

struct CrossEntropy : Function<CrossEntropy> {
  struct Saved {
    Tensor logits;
    Tensor labels;
    Tensor lse;
    std::int64_t vocab_size = 0;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {logits, labels, lse}; }
  };
  static constexpr const char* kName = "CrossEntropy";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& logits, const Tensor& labels,
                        std::int64_t vocab_size) {
    ops::CrossEntropyResult result = ops::cross_entropy_forward(logits, labels, vocab_size);
    if (ctx.recording()) ctx.saved = {logits, labels, result.lse, vocab_size};
    return result.losses;
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    const Saved& s = ctx.saved;
    return {ops::cross_entropy_backward_inplace(ops::contiguous(grads[0]), s.logits, s.labels, s.lse,
                                                s.vocab_size),
            Tensor()};
  }
};

struct FlashAttention : Function<FlashAttention> {
  struct Saved {
    Tensor q;
    Tensor k;
    Tensor v;
    Tensor o;
    Tensor lse;
    ops::FlashAttentionOptions options;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {q, k, v, o, lse}; }
  };
  static constexpr const char* kName = "FlashAttention";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& q, const Tensor& k,
                        const Tensor& v, const ops::FlashAttentionOptions& options) {
    ops::FlashAttentionResult result = ops::flash_attention_forward(q, k, v, options);
    if (ctx.recording()) ctx.saved = {q, k, v, result.o, result.lse, options};
    return result.o;
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    const Saved& s = ctx.saved;
    ops::FlashAttentionGradients result = ops::flash_attention_backward(
        ops::contiguous(grads[0]), s.q, s.k, s.v, s.o, s.lse, s.options);
    return {result.dq, result.dk, result.dv};
  }
};

struct Rotary : Function<Rotary> {
  struct Saved {
    std::int64_t rotary_dim = 0;
    double base = 10000.0;
    [[nodiscard]] std::vector<Tensor> tensors() const { return {}; }
  };
  static constexpr const char* kName = "Rotary";

  static Tensor forward(FunctionContext<Saved>& ctx, const Tensor& x, std::int64_t rotary_dim,
                        double base) {
    ctx.saved = {rotary_dim, base};
    return ops::rotary(x, rotary_dim, base, /*inverse=*/false);
  }
  static std::vector<Tensor> backward(FunctionContext<Saved>& ctx, const std::vector<Tensor>& grads) {
    return {ops::rotary(grads[0], ctx.saved.rotary_dim, ctx.saved.base, /*inverse=*/true)};
  }
};

}  // namespace

Tensor norm(const Tensor& x, const Tensor& gamma, const Tensor& beta,
            const ops::NormOptions& options) {
  return Norm::apply(x, gamma, beta, options);
}

Tensor bias_activation(const Tensor& x, const Tensor& bias, const ops::ActivationOptions& options) {
  return BiasActivation::apply(x, bias, options);
}

Tensor softmax(const Tensor& scores, const Tensor& mask, const ops::SoftmaxOptions& options) {
  return Softmax::apply(scores, mask, options);
}

Tensor dropout(const Tensor& x, float p, const Rng& rng) { return Dropout::apply(x, p, rng); }

Tensor bias_dropout_add(const Tensor& x, const Tensor& bias, const Tensor& residual, float p,
                        const Rng& rng) {
  return BiasDropoutAdd::apply(x, bias, residual, p, rng);
}

Tensor embedding(const Tensor& ids, const Tensor& table, std::int64_t first_id) {
  return Embedding::apply(ids, table, first_id);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, std::int64_t vocab_size) {
  return CrossEntropy::apply(logits, labels, vocab_size);
}

Tensor flash_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                       const ops::FlashAttentionOptions& options) {
  return FlashAttention::apply(q, k, v, options);
}

Tensor rotary(const Tensor& x, std::int64_t rotary_dim, double base) {
  return Rotary::apply(x, rotary_dim, base);
}

}  // namespace kitchen::autograd
