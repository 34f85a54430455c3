#include "kitchen/base/rng.h"
#include "kitchen/formats/codec.h"
#include "kitchen/ops/init.h"

#include "cuda/base/launch.h"
#include "cuda/register_kernels.h"

#include <cstring>
#include <vector>

/// @file  normal_init.cpp
/// @brief Draws initial weights on the host and copies them: the fp64 logarithm and cosine of the
/// contract differ
///        between host and device libraries in the last bit, and every split must start from equal
///        weights.

namespace kitchen::cuda {

namespace {

/// Row-major index in the global tensor of the local element `index`.
std::int64_t global_index(const View& out, const Shape& global_shape, const Shape& global_offset,
                          std::int64_t index) {
  std::int64_t result = 0;
  std::int64_t stride = 1;
  for (int i = out.rank - 1; i >= 0; --i) {
    const auto dim = static_cast<std::size_t>(i);
    result += (global_offset[dim] + index % out.shape[dim]) * stride;
    index /= out.shape[dim];
    stride *= global_shape[dim];
  }
  return result;
}

void put(std::uint8_t* to, DType dtype, float value) {
  if (dtype == DType::float32) {
    std::memcpy(to, &value, sizeof(value));
    return;
  }
  const std::uint16_t bits =
      dtype == DType::bfloat16 ? formats::float_to_bf16(value) : formats::float_to_fp16(value);
  std::memcpy(to, &bits, sizeof(bits));
}

/// Waits for the copy, since the host memory ends with the call.
void normal_init(const Stream& stream, std::uint64_t key, double mean, double std,
                 const Shape& global_shape, const Shape& global_offset, View out) {
  const std::int64_t count = out.numel();
  if (count == 0) return;
  const Rng rng{key, 0};
  const std::int64_t size = size_of(out.dtype);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count * size));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t global = global_index(out, global_shape, global_offset, i);
    const double value = mean + std * normal_at(rng, static_cast<std::uint64_t>(global));
    put(bytes.data() + i * size, out.dtype, static_cast<float>(value));
  }
  KITCHEN_CUDA_CHECK(cudaMemcpyAsync(out.data, bytes.data(), bytes.size(), cudaMemcpyHostToDevice,
                                     native(stream)));
  KITCHEN_CUDA_CHECK(cudaStreamSynchronize(native(stream)));
}

}  // namespace

void register_init_kernels(Backend& backend) {
  backend.add<ops::NormalInitKernel>("exact", &normal_init);
}

}  // namespace kitchen::cuda
