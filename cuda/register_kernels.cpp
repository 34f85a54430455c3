#include "cuda/register_kernels.h"

namespace kitchen::cuda {

void register_cuda_kernels(Backend& backend) {
  register_memory_kernels(backend);
  register_elementwise_kernels(backend);
  register_quantize_kernels(backend);
  register_sum_kernels(backend);
  register_gemm_kernels(backend);
  register_activation_kernels(backend);
  register_norm_kernels(backend);
  register_softmax_kernels(backend);
  register_dropout_kernels(backend);
  register_embedding_kernels(backend);
  register_cross_entropy_kernels(backend);
  register_optimizer_kernels(backend);
  register_init_kernels(backend);
  register_rotary_kernels(backend);
  register_flash_attention_kernels(backend);
  register_delayed_scaling_kernels(backend);
  register_scale_layout_kernels(backend);
}

}  // namespace kitchen::cuda
