#include "support/compare.h"

#include <cmath>
#include <cstring>

namespace kitchen::testing {

namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

std::vector<std::uint8_t> bytes_of(const Tensor& tensor) {
  const std::size_t count = static_cast<std::size_t>(tensor.nbytes());
  std::vector<std::uint8_t> bytes(count);
  const auto copy = [&](const auto& values) {
    if (count > 0) std::memcpy(bytes.data(), values.data(), count);
  };
  switch (tensor.dtype()) {
    case DType::float32: copy(tensor.to_vector<float>()); break;
    case DType::int32: copy(tensor.to_vector<std::int32_t>()); break;
    case DType::int64: copy(tensor.to_vector<std::int64_t>()); break;
    case DType::float16:
    case DType::bfloat16: copy(tensor.to_vector<std::uint16_t>()); break;
    default: copy(tensor.to_vector<std::uint8_t>()); break;
  }
  return bytes;
}

double half_to_double(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa != 0 ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

double bfloat_to_double(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

}  // namespace

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  if (tensor.dtype() == DType::float32) {
    for (const float v : tensor.to_vector<float>()) values.push_back(v);
    return values;
  }
  const bool is_bfloat = tensor.dtype() == DType::bfloat16;
  for (const std::uint16_t v : tensor.to_vector<std::uint16_t>()) {
    values.push_back(is_bfloat ? bfloat_to_double(v) : half_to_double(v));
  }
  return values;
}

AssertionResult same_bits(const Tensor& expected, const Tensor& actual) {
  if (!expected.defined() || !actual.defined()) return AssertionFailure() << "undefined tensor";
  if (expected.dtype() != actual.dtype()) {
    return AssertionFailure() << "dtype " << to_string(actual.dtype()) << ", expected "
                              << to_string(expected.dtype());
  }
  if (expected.shape() != actual.shape()) {
    return AssertionFailure() << "shape " << to_string(actual.shape()) << ", expected "
                              << to_string(expected.shape());
  }
  const std::vector<std::uint8_t> want = bytes_of(expected);
  const std::vector<std::uint8_t> got = bytes_of(actual);
  const auto size = static_cast<std::size_t>(size_of(expected.dtype()));
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (want[i] == got[i]) continue;
    return AssertionFailure() << "element " << i / size << " differs: byte " << i % size << " is "
                              << int{got[i]} << ", expected " << int{want[i]};
  }
  return AssertionSuccess();
}

AssertionResult close(const std::vector<double>& expected, const std::vector<double>& actual,
                      double atol, double rtol) {
  if (expected.size() != actual.size()) {
    return AssertionFailure() << actual.size() << " values, expected " << expected.size();
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double bound = atol + rtol * std::fabs(expected[i]);
    if (std::isfinite(expected[i]) && std::fabs(actual[i] - expected[i]) <= bound) continue;
    return AssertionFailure() << "element " << i << " is " << actual[i] << ", expected "
                              << expected[i] << " within " << bound;
  }
  return AssertionSuccess();
}

AssertionResult close(const Tensor& expected, const Tensor& actual, double atol, double rtol) {
  if (!expected.defined() || !actual.defined()) return AssertionFailure() << "undefined tensor";
  if (expected.shape() != actual.shape()) {
    return AssertionFailure() << "shape " << to_string(actual.shape()) << ", expected "
                              << to_string(expected.shape());
  }
  return close(values_of(expected), values_of(actual), atol, rtol);
}

AssertionResult error_below(const std::vector<double>& expected, const std::vector<double>& actual,
                            double bound) {
  if (expected.size() != actual.size()) {
    return AssertionFailure() << actual.size() << " values, expected " << expected.size();
  }
  double product = 0.0;
  double squares = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    product += expected[i] * actual[i];
    squares += expected[i] * expected[i] + actual[i] * actual[i];
  }
  const double diff = squares == 0.0 ? 0.0 : 1.0 - 2.0 * product / squares;
  if (diff <= bound) return AssertionSuccess();
  return AssertionFailure() << "calc_diff is " << diff << ", bound " << bound;
}

AssertionResult error_below(const Tensor& expected, const Tensor& actual, double bound) {
  if (!expected.defined() || !actual.defined()) return AssertionFailure() << "undefined tensor";
  if (expected.shape() != actual.shape()) {
    return AssertionFailure() << "shape " << to_string(actual.shape()) << ", expected "
                              << to_string(expected.shape());
  }
  return error_below(values_of(expected), values_of(actual), bound);
}

}  // namespace kitchen::testing
