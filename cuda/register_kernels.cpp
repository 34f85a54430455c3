#include "cuda/register_kernels.h"

namespace kitchen::cuda {

void register_cuda_kernels(Backend& backend) {
  register_memory_kernels(backend);
  register_elementwise_kernels(backend);
  register_quantize_kernels(backend);
}

}  // namespace kitchen::cuda
