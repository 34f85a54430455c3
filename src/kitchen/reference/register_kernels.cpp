#include "kitchen/reference/register_kernels.h"

#include "kitchen/reference/cross_entropy.h"
#include "kitchen/reference/delayed_scaling.h"
#include "kitchen/reference/dropout.h"
#include "kitchen/reference/elementwise.h"
#include "kitchen/reference/embedding.h"
#include "kitchen/reference/gemm.h"
#include "kitchen/reference/activation.h"
#include "kitchen/reference/flash_attention.h"
#include "kitchen/reference/host_memory.h"
#include "kitchen/reference/norm.h"
#include "kitchen/reference/rotary.h"
#include "kitchen/reference/softmax.h"
#include "kitchen/reference/quantize.h"
#include "kitchen/reference/quantized_gemm.h"
#include "kitchen/reference/init.h"
#include "kitchen/reference/scale_layout.h"
#include "kitchen/reference/optimizer.h"

namespace kitchen::reference {

void register_reference_kernels(Backend& backend) {
  backend.add<FillBytesKernel>("exact", &fill_bytes);
  backend.add<CopyFromHostKernel>("exact", &copy_from_host);
  backend.add<CopyToHostKernel>("exact", &copy_to_host);
  backend.add<CopyStridedKernel>("exact", &copy_strided);
  backend.add<SynchronizeKernel>("exact", &synchronize);
  backend.add<CreateStreamKernel>("exact", &create_stream);
  backend.add<DestroyStreamKernel>("exact", &destroy_stream);
  register_elementwise_kernels(backend);
  register_gemm_kernels(backend);
  register_activation_kernels(backend);
  register_flash_attention_kernels(backend);
  register_norm_kernels(backend);
  register_rotary_kernels(backend);
  register_softmax_kernels(backend);
  register_quantize_kernels(backend);
  register_quantized_gemm_kernels(backend);
  register_delayed_scaling_kernels(backend);
  register_scale_layout_kernels(backend);
  register_dropout_kernels(backend);
  register_embedding_kernels(backend);
  register_cross_entropy_kernels(backend);
  register_optimizer_kernels(backend);
  register_init_kernels(backend);
}

}  // namespace kitchen::reference
