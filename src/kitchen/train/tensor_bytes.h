#pragma once

#include "kitchen/base/tensor.h"

#include <cstdint>
#include <vector>

namespace kitchen::train {

/// The bytes of all elements in row-major order, whatever dtype, strides and device `tensor` has.
/// @throws ValueError on the meta device.
std::vector<std::uint8_t> bytes_of(const Tensor& tensor);

/// Overwrites the elements of `tensor` in place with row-major bytes and bumps its version.
/// @throws ValueError if `bytes` has not tensor.nbytes() bytes, or on the meta device.
void set_bytes(const Tensor& tensor, const std::vector<std::uint8_t>& bytes);

}  // namespace kitchen::train
