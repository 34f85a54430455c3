#include "kitchen/ops/init.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/operand_checks.h"

namespace kitchen::ops {

void normal_init(const Tensor& out, std::uint64_t key, double mean, double std,
                 const Shape& global_shape, const Shape& global_offset) {
  require_high_precision("normal_init", "out", out);
  require_contiguous("normal_init", "out", out);
  const std::size_t rank = out.shape().size();
  bool fits = rank > 0 && global_shape.size() == rank && global_offset.size() == rank;
  for (std::size_t i = 0; fits && i < rank; ++i) {
    fits = global_offset[i] >= 0 && global_offset[i] + out.shape()[i] <= global_shape[i];
  }
  if (!fits) {
    throw ValueError("normal_init: a block of shape " + to_string(out.shape()) + " at offset " +
                     to_string(global_offset) + " does not lie in a tensor of shape " +
                     to_string(global_shape));
  }
  out.context()->launch<NormalInitKernel>({}, key, mean, std, global_shape, global_offset,
                                          out.kernel_view());
}

}  // namespace kitchen::ops
