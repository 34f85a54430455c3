#include "kitchen/reference/rotary.h"

#include "kitchen/ops/rotary.h"
#include "kitchen/reference/row_io.h"

#include <cmath>
#include <vector>

namespace kitchen::reference {

namespace {

constexpr std::int64_t kParallelElements = 16384;

/// Cosines and sines of one position.
struct Angles {
  explicit Angles(std::int64_t half)
      : cosine(static_cast<std::size_t>(half)), sine(static_cast<std::size_t>(half)) {}

  void set_position(std::int64_t position, const std::vector<double>& frequencies, float sign) {
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      cosine[i] = static_cast<float>(std::cos(angle));
      sine[i] = sign * static_cast<float>(std::sin(angle));
    }
  }

  std::vector<float> cosine;
  std::vector<float> sine;
};

std::vector<double> frequencies_of(std::int64_t rotary_dim, double base) {
  std::vector<double> frequencies(static_cast<std::size_t>(rotary_dim / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] =
        std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim));
  }
  return frequencies;
}

void rotate_row(float* row, std::int64_t half, const Angles& angles) {
  float* low = row;
  float* high = row + half;
  const float* cosine = angles.cosine.data();
  const float* sine = angles.sine.data();
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = low[i];
    const float b = high[i];
    low[i] = a * cosine[i] - b * sine[i];
    high[i] = b * cosine[i] + a * sine[i];
  }
}

void rotary(const Stream& /*stream*/, ConstView x, std::int64_t rotary_dim, double base, float sign,
            View out) {
  const std::vector<double> frequencies = frequencies_of(rotary_dim, base);
  const std::int64_t head_dim = x.shape[3];
#pragma omp parallel if (x.numel() > kParallelElements)
  {
    Angles angles(rotary_dim / 2);
    std::vector<float> row(static_cast<std::size_t>(head_dim));
#pragma omp for schedule(static)
    for (std::int64_t s = 0; s < x.shape[0]; ++s) {
      angles.set_position(s, frequencies, sign);
      for (std::int64_t b = 0; b < x.shape[1]; ++b) {
        for (std::int64_t n = 0; n < x.shape[2]; ++n) {
          const std::int64_t from = s * x.strides[0] + b * x.strides[1] + n * x.strides[2];
          const std::int64_t to = s * out.strides[0] + b * out.strides[1] + n * out.strides[2];
          load_row(x.data, x.dtype, from, 1, head_dim, row.data());
          rotate_row(row.data(), rotary_dim / 2, angles);
          store_row(row.data(), out.data, out.dtype, to, 1, head_dim);
        }
      }
    }
  }
}

}  // namespace

void register_rotary_kernels(Backend& backend) {
  backend.add<ops::RotaryKernel>("exact", &rotary);
}

}  // namespace kitchen::reference
