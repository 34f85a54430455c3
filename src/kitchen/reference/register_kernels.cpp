#include "kitchen/reference/register_kernels.h"

#include "kitchen/reference/activation.h"
#include "kitchen/reference/flash_attention.h"
#include "kitchen/reference/host_memory.h"
#include "kitchen/reference/norm.h"
#include "kitchen/reference/rotary.h"
#include "kitchen/reference/softmax.h"

namespace kitchen::reference {

void register_reference_kernels(Backend& backend) {
  backend.add<FillBytesKernel>("exact", &fill_bytes);
  backend.add<CopyFromHostKernel>("exact", &copy_from_host);
  backend.add<CopyToHostKernel>("exact", &copy_to_host);
  backend.add<CopyStridedKernel>("exact", &copy_strided);
  register_activation_kernels(backend);
  register_flash_attention_kernels(backend);
  register_norm_kernels(backend);
  register_rotary_kernels(backend);
  register_softmax_kernels(backend);
}

}  // namespace kitchen::reference
