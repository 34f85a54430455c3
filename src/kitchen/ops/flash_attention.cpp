#include "kitchen/ops/flash_attention.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/operand_checks.h"

namespace kitchen::ops {

namespace {

std::string subject(const char* op, const char* name) {
  return std::string(op) + ": " + name;
}

void require_same_dtype(const char* op, const char* name, const Tensor& tensor, const Tensor& q) {
  require_high_precision(op, name, tensor);
  if (tensor.dtype() == q.dtype()) return;
  throw TypeError(subject(op, name) + " has dtype " + to_string(tensor.dtype()) + ", but q has " +
                  to_string(q.dtype()) +
                  "; expected float32, float16 or bfloat16, the same for all operands");
}

void require_rank_4(const char* op, const char* name, const Tensor& tensor) {
  if (tensor.rank() == 4) return;
  throw ValueError(subject(op, name) + " has shape " + to_string(tensor.shape()) +
                   "; expected [s, b, heads, d]");
}

void check_heads(const char* op, const Tensor& q, const Tensor& k, const Tensor& v) {
  require_shape(op, "v", v, k.shape());
  if (k.dim(1) != q.dim(1) || k.dim(3) != q.dim(3)) {
    throw ValueError(subject(op, "k") + " has shape " + to_string(k.shape()) + " and q " +
                     to_string(q.shape()) + "; batch (dimension 1) and head size (3) must agree");
  }
  if (q.dim(3) == 0) throw ValueError(subject(op, "q") + " has head size 0; expected at least 1");
  if (k.dim(2) == 0 || q.dim(2) % k.dim(2) != 0) {
    throw ValueError(subject(op, "q") + " has " + std::to_string(q.dim(2)) + " heads and k " +
                     std::to_string(k.dim(2)) +
                     "; the number of query heads must be a multiple of that of key heads");
  }
}

void check_offsets(const char* op, const char* name, const std::vector<std::int64_t>& offsets,
                   std::int64_t num_tokens) {
  bool is_ascending = offsets.front() == 0;
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    is_ascending = is_ascending && offsets[i] >= offsets[i - 1];
  }
  if (!is_ascending) {
    throw ValueError(subject(op, name) + " is " + to_string(offsets) +
                     "; expected offsets that begin at 0 and never decrease");
  }
  if (offsets.back() > num_tokens) {
    throw ValueError(subject(op, name) + " ends at " + std::to_string(offsets.back()) +
                     ", but only " + std::to_string(num_tokens) + " tokens are given");
  }
}

void check_options(const char* op, const Tensor& q, const Tensor& k,
                   const FlashAttentionOptions& options) {
  if (options.window.first < -1 || options.window.second < -1) {
    throw ValueError(subject(op, "window") + " is (" + std::to_string(options.window.first) + ", " +
                     std::to_string(options.window.second) +
                     "); expected sizes of at least 0, or -1 for unlimited");
  }
  if (options.cu_seqlens_q.empty() && options.cu_seqlens_k.empty()) return;
  if (options.cu_seqlens_q.size() != options.cu_seqlens_k.size()) {
    throw ValueError(subject(op, "cu_seqlens_q") + " has " +
                     std::to_string(options.cu_seqlens_q.size()) + " offsets and cu_seqlens_k " +
                     std::to_string(options.cu_seqlens_k.size()) + "; expected the same number");
  }
  if (q.dim(1) != 1) {
    throw ValueError(subject(op, "q") + " has batch size " + std::to_string(q.dim(1)) +
                     "; packed sequences lie in dimension 0 of a batch of 1");
  }
  check_offsets(op, "cu_seqlens_q", options.cu_seqlens_q, q.dim(0));
  check_offsets(op, "cu_seqlens_k", options.cu_seqlens_k, k.dim(0));
}

void check_inputs(const char* op, const Tensor& q, const Tensor& k, const Tensor& v,
                  const FlashAttentionOptions& options) {
  require_high_precision(op, "q", q);
  require_same_dtype(op, "k", k, q);
  require_same_dtype(op, "v", v, q);
  check_flash_attention_shapes(op, q, k, v, options);
}

}  // namespace

void check_flash_attention_shapes(const char* op, const Tensor& q, const Tensor& k, const Tensor& v,
                                  const FlashAttentionOptions& options) {
  require_rank_4(op, "q", q);
  require_rank_4(op, "k", k);
  check_heads(op, q, k, v);
  check_options(op, q, k, options);
}

FlashAttentionResult flash_attention_forward(const Tensor& q, const Tensor& k, const Tensor& v,
                                             const FlashAttentionOptions& options) {
  const char* op = "flash_attention_forward";
  check_inputs(op, q, k, v, options);
  const ContextPtr& context = common_context(op, {&q, &k, &v});
  FlashAttentionResult result;
  result.o = Tensor::empty(context, q.shape(), q.dtype());
  result.lse = Tensor::empty(context, {q.dim(1), q.dim(2), q.dim(0)}, DType::float32);
  context->launch<FlashAttentionForwardKernel>(
      {}, with_unit_last_stride(q).const_view(), with_unit_last_stride(k).const_view(),
      with_unit_last_stride(v).const_view(), result.o.kernel_view(), result.lse.kernel_view(),
      options);
  return result;
}

FlashAttentionGradients flash_attention_backward(const Tensor& dout, const Tensor& q,
                                                 const Tensor& k, const Tensor& v, const Tensor& o,
                                                 const Tensor& lse,
                                                 const FlashAttentionOptions& options) {
  const char* op = "flash_attention_backward";
  check_inputs(op, q, k, v, options);
  require_same_dtype(op, "dout", dout, q);
  require_shape(op, "dout", dout, q.shape());
  require_same_dtype(op, "o", o, q);
  require_shape(op, "o", o, q.shape());
  require_dtype(op, "lse", lse, DType::float32);
  require_shape(op, "lse", lse, {q.dim(1), q.dim(2), q.dim(0)});
  const ContextPtr& context = common_context(op, {&dout, &q, &k, &v, &o, &lse});
  const Tensor delta = Tensor::empty(context, lse.shape(), DType::float32);
  FlashAttentionGradients gradients;
  gradients.dq = Tensor::empty(context, q.shape(), q.dtype());
  gradients.dk = Tensor::empty(context, k.shape(), k.dtype());
  gradients.dv = Tensor::empty(context, v.shape(), v.dtype());
  context->launch<FlashAttentionBackwardKernel>(
      {}, with_unit_last_stride(dout).const_view(), with_unit_last_stride(q).const_view(),
      with_unit_last_stride(k).const_view(), with_unit_last_stride(v).const_view(),
      with_unit_last_stride(o).const_view(), dense(lse).const_view(), delta.kernel_view(),
      gradients.dq.kernel_view(), gradients.dk.kernel_view(), gradients.dv.kernel_view(), options);
  return gradients;
}

}  // namespace kitchen::ops
