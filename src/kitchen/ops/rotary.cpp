#include "kitchen/ops/rotary.h"

#include "kitchen/base/error.h"
#include "kitchen/ops/operand_checks.h"

namespace kitchen::ops {

Tensor rotary(const Tensor& x, std::int64_t rotary_dim, double base, bool inverse) {
  require_high_precision("rotary", "x", x);
  if (x.rank() != 4) {
    throw ValueError("rotary: x has shape " + to_string(x.shape()) + "; expected [s, b, n, d]");
  }
  if (rotary_dim < 0 || rotary_dim % 2 != 0 || rotary_dim > x.dim(3)) {
    throw ValueError("rotary: rotary_dim is " + std::to_string(rotary_dim) +
                     "; expected an even number from 0 to the head size " +
                     std::to_string(x.dim(3)));
  }
  if (!(base > 0.0)) {
    throw ValueError("rotary: base is " + std::to_string(base) + "; expected a positive number");
  }
  const Tensor out = Tensor::empty(x.context(), x.shape(), x.dtype());
  x.context()->launch<RotaryKernel>({}, with_unit_last_stride(x).const_view(), rotary_dim, base,
                                    inverse ? -1.0f : 1.0f, out.kernel_view());
  return out;
}

}  // namespace kitchen::ops
