#include "support/values.h"

#include "kitchen/reference/cpu_backend.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace kitchen::testing {

namespace {

std::uint16_t bfloat16_bits(double value) {
  const auto narrow = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof(bits));
  return static_cast<std::uint16_t>(bits >> 16);
}

/// Normal half-precision numbers and zero, by their definition.
std::uint16_t float16_bits(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (value == 0.0) return sign;
  int exponent = 0;
  const double mantissa = std::frexp(std::fabs(value), &exponent);  // [0.5, 1)
  const auto fraction = static_cast<int>(std::ldexp(mantissa, 11)) - 1024;
  return static_cast<std::uint16_t>(sign | ((exponent + 14) << 10) | fraction);
}

}  // namespace

ContextPtr poisoned_context() {
  auto allocator = std::make_shared<HostAllocator>();
  allocator->set_poison(true);
  return std::make_shared<Context>(Device::cpu(), reference::cpu_backend(), std::move(allocator));
}

std::vector<double> grid_values(std::int64_t count, std::uint64_t seed) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(count));
  std::uint64_t state = seed * 2862933555777941757u + 3037000493u;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values.push_back((static_cast<double>(state >> 56) - 128.0) / 32.0);
  }
  return values;
}

Tensor tensor_of(const ContextPtr& context, const Shape& shape, DType dtype,
                 const std::vector<double>& values) {
  if (dtype == DType::float32) {
    return Tensor::from_vector(context, shape, std::vector<float>(values.begin(), values.end()));
  }
  if (static_cast<std::int64_t>(values.size()) != num_elements(shape)) {
    throw std::logic_error("tensor_of: number of values and shape differ");
  }
  const Tensor tensor = Tensor::empty(context, shape, dtype);
  auto* data = tensor.data<std::uint16_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    data[i] = dtype == DType::bfloat16 ? bfloat16_bits(values[i]) : float16_bits(values[i]);
  }
  return tensor;
}

double unit_roundoff(DType dtype) {
  if (dtype == DType::float32) return 0x1p-24;
  return dtype == DType::bfloat16 ? 0x1p-8 : 0x1p-11;
}

}  // namespace kitchen::testing
