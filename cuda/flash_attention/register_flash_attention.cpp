#include "cuda/flash_attention/flash_attention.h"
#include "cuda/register_kernels.h"

namespace kitchen::cuda {

void register_flash_attention_kernels(Backend& backend) {
  backend.add<ops::FlashAttentionForwardKernel>("blocked", &flash_attention_forward);
  backend.add<ops::FlashAttentionBackwardKernel>("blocked", &flash_attention_backward);
}

}  // namespace kitchen::cuda
