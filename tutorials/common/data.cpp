#include "common/data.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rng.h"

#include <fmt/format.h>

#include <cmath>

namespace kitchen::tutorials {
namespace {

std::vector<float> normal_values(std::int64_t count, std::uint64_t seed, double deviation) {
  const Rng rng{seed, 0};
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(deviation * normal_at(rng, i));
  }
  return values;
}

}  // namespace

Tensor normal_tensor(const ContextPtr& context, const Shape& shape, std::uint64_t seed,
                     double standard_deviation) {
  return Tensor::from_vector<float>(context, shape,
                                    normal_values(num_elements(shape), seed, standard_deviation));
}

Tensor normal_with_outlier(const ContextPtr& context, const Shape& shape, std::uint64_t seed,
                           std::int64_t place, float outlier) {
  std::vector<float> values = normal_values(num_elements(shape), seed, 1.0);
  values.at(static_cast<std::size_t>(place)) = outlier;
  return Tensor::from_vector<float>(context, shape, values);
}

double relative_error(const Tensor& x, const Tensor& y) {
  if (x.numel() != y.numel()) {
    throw ValueError(fmt::format("relative_error: {} and {} elements, expected equal numbers",
                                 x.numel(), y.numel()));
  }
  const std::vector<float> a = x.to_vector<float>();
  const std::vector<float> b = y.to_vector<float>();
  double noise = 0.0;
  double signal = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    noise += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    signal += double{b[i]} * b[i];
  }
  return std::sqrt(noise / signal);
}

double decibels(double relative_error) {
  return -20.0 * std::log10(relative_error);
}

}  // namespace kitchen::tutorials
