#include "kitchen/reference/activation.h"

#include "kitchen/ops/activation.h"
#include "kitchen/ops/activation_functions.h"
#include "kitchen/reference/row_io.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kitchen::reference {

namespace {

constexpr std::int64_t kChunk =
    512;  // columns worked on at a time: the buffers stay in the L1 cache
constexpr std::int64_t kParallelElements = 16384;

template <class Body>
void with_function(ops::Activation activation, Body&& body) {
  switch (activation) {
    case ops::Activation::gelu:
      body(ops::Gelu{});
      return;
    case ops::Activation::gelu_tanh:
      body(ops::GeluTanh{});
      return;
    case ops::Activation::silu:
      body(ops::Silu{});
      return;
    case ops::Activation::relu:
      body(ops::Relu{});
      return;
  }
}

std::vector<float> bias_row(const ConstView& bias) {
  std::vector<float> row;
  if (!bias.defined()) return row;
  row.resize(static_cast<std::size_t>(bias.shape[0]));
  load_row(bias.data, bias.dtype, 0, 1, bias.shape[0], row.data());
  return row;
}

/// h = x + bias rounded to x's dtype, for `count` columns from `first` of row `row`.
template <class Io>
void load_hidden(const ConstView& x, std::int64_t row, std::int64_t first, std::int64_t count,
                 const std::vector<float>& bias, float* h) {
  const auto* from = static_cast<const typename Io::Storage*>(x.data) + row * x.strides[0] + first;
  if (bias.empty()) {
    for (std::int64_t i = 0; i < count; ++i) h[i] = Io::load(from[i]);
    return;
  }
  const float* shift = bias.data() + first;
  for (std::int64_t i = 0; i < count; ++i) {
    h[i] = Io::load(Io::store(Io::load(from[i]) + shift[i]));
  }
}

/// Calls body(row, first column, number of columns) for all pieces of a [rows, cols] matrix.
template <class Body>
void for_each_piece(std::int64_t rows, std::int64_t cols, Body&& body) {
  const std::int64_t pieces = (cols + kChunk - 1) / kChunk;
#pragma omp parallel for schedule(static) if (rows * cols > kParallelElements)
  for (std::int64_t index = 0; index < rows * pieces; ++index) {
    const std::int64_t first = index % pieces * kChunk;
    body(index / pieces, first, std::min(kChunk, cols - first));
  }
}

template <class Io, class Function>
void forward(const ConstView& x, const ConstView& bias, const View& y,
             const ops::ActivationOptions& options) {
  const std::vector<float> shift = bias_row(bias);
  const std::int64_t cols = y.shape[1];
  for_each_piece(y.shape[0], cols, [&](std::int64_t row, std::int64_t first, std::int64_t count) {
    float h[kChunk];
    load_hidden<Io>(x, row, first, count, shift, h);
    for (std::int64_t i = 0; i < count; ++i) h[i] = Function::value(h[i]);
    if (options.gated) {
      float linear[kChunk];
      load_hidden<Io>(x, row, cols + first, count, shift, linear);
      for (std::int64_t i = 0; i < count; ++i) h[i] *= linear[i] + options.linear_offset;
    }
    store_row(h, y.data, y.dtype, row * y.strides[0] + first, 1, count);
  });
}

template <class Io, class Function>
void backward(const ConstView& dy, const ConstView& x, const ConstView& bias, const View& dx,
              const ops::ActivationOptions& options) {
  const std::vector<float> shift = bias_row(bias);
  const std::int64_t cols = dy.shape[1];
  for_each_piece(dy.shape[0], cols, [&](std::int64_t row, std::int64_t first, std::int64_t count) {
    float h[kChunk];
    float gradient[kChunk];
    float out[kChunk];
    load_hidden<Io>(x, row, first, count, shift, h);
    load_row(dy.data, dy.dtype, row * dy.strides[0] + first, 1, count, gradient);
    const std::int64_t target = row * dx.strides[0] + first;
    if (!options.gated) {
      for (std::int64_t i = 0; i < count; ++i) out[i] = gradient[i] * Function::slope(h[i]);
      store_row(out, dx.data, dx.dtype, target, 1, count);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) out[i] = gradient[i] * Function::value(h[i]);
    store_row(out, dx.data, dx.dtype, target + cols, 1, count);
    load_hidden<Io>(x, row, cols + first, count, shift, out);
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = gradient[i] * (out[i] + options.linear_offset) * Function::slope(h[i]);
    }
    store_row(out, dx.data, dx.dtype, target, 1, count);
  });
}

void activation_forward(const Stream& /*stream*/, ConstView x, ConstView bias, View y,
                        const ops::ActivationOptions& options) {
  with_io(x.dtype, [&](auto io) {
    with_function(options.activation, [&](auto function) {
      forward<decltype(io), decltype(function)>(x, bias, y, options);
    });
  });
}

void activation_backward(const Stream& /*stream*/, ConstView dy, ConstView x, ConstView bias,
                         View dx, const ops::ActivationOptions& options) {
  with_io(x.dtype, [&](auto io) {
    with_function(options.activation, [&](auto function) {
      backward<decltype(io), decltype(function)>(dy, x, bias, dx, options);
    });
  });
}

}  // namespace

void register_activation_kernels(Backend& backend) {
  backend.add<ops::ActivationForwardKernel>("exact", &activation_forward);
  backend.add<ops::ActivationBackwardKernel>("exact", &activation_backward);
}

}  // namespace kitchen::reference
