#pragma once

#include "kitchen/base/backend.h"

namespace kitchen::cuda {

/// Adds every CUDA kernel to `backend`: explicit, one line a group, no static initialisers.
void register_cuda_kernels(Backend& backend);

void register_memory_kernels(Backend& backend);       ///< base/memory_kernels.h
void register_elementwise_kernels(Backend& backend);  ///< ops/elementwise.h, without the sums
void register_quantize_kernels(Backend& backend);     ///< ops/quantize.h
void register_sum_kernels(Backend& backend);   ///< sums of ops/elementwise.h and ops/optimizer.h
void register_gemm_kernels(Backend& backend);  ///< ops/gemm.h and ops/quantized_gemm.h
void register_activation_kernels(Backend& backend);
void register_norm_kernels(Backend& backend);
void register_softmax_kernels(Backend& backend);
void register_dropout_kernels(Backend& backend);
void register_embedding_kernels(Backend& backend);
void register_cross_entropy_kernels(Backend& backend);
void register_init_kernels(Backend& backend);
void register_optimizer_kernels(Backend& backend);  ///< AdamW
void register_rotary_kernels(Backend& backend);
void register_flash_attention_kernels(Backend& backend);
void register_delayed_scaling_kernels(Backend& backend);
void register_scale_layout_kernels(Backend& backend);

}  // namespace kitchen::cuda
