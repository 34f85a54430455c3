#include "kitchen/reference/elementwise.h"

#include "kitchen/ops/elementwise.h"
#include "kitchen/reference/row_io.h"
#include "kitchen/reference/row_loop.h"

#include <cstring>
#include <vector>

namespace kitchen::reference {

namespace {

/// Elements that are widened at a time: three such rows stay in the L1 cache.
constexpr std::int64_t kBlock = 1024;

void convert_run(const ConstView& source, std::int64_t from, std::int64_t from_stride,
                 const View& target, std::int64_t to, std::int64_t to_stride, std::int64_t count) {
  if (source.dtype == target.dtype && from_stride == 1 && to_stride == 1) {
    std::memcpy(element_at(target.data, target.dtype, to),
                element_at(source.data, source.dtype, from),
                static_cast<std::size_t>(count * size_of(source.dtype)));
  } else if (target.dtype == DType::float32 && to_stride == 1) {
    load_row(source.data, source.dtype, from, from_stride, count,
             static_cast<float*>(target.data) + to);
  } else if (source.dtype == DType::float32 && from_stride == 1) {
    store_row(static_cast<const float*>(source.data) + from, target.data, target.dtype, to,
              to_stride, count);
  } else {
    float row[kBlock];
    for (std::int64_t i = 0; i < count; i += kBlock) {
      const std::int64_t length = std::min(kBlock, count - i);
      load_row(source.data, source.dtype, from + i * from_stride, from_stride, length, row);
      store_row(row, target.data, target.dtype, to + i * to_stride, to_stride, length);
    }
  }
}

void cast(const Stream& /*stream*/, ConstView source, View target) {
  RowLoop(source, target)
      .run([&](std::int64_t from, std::int64_t from_stride, std::int64_t to, std::int64_t to_stride,
               std::int64_t count) {
        convert_run(source, from, from_stride, target, to, to_stride, count);
      });
}

/// out[i] = combine(a[i], b[i]) for contiguous views.
template <class Combine>
void combine_contiguous(const ConstView& a, const ConstView& b, const View& out,
                        const Combine& combine) {
  parallel_pieces(out.numel(), kParallelGrain, [&](std::int64_t begin, std::int64_t end) {
    float x[kBlock];
    float y[kBlock];
    for (std::int64_t i = begin; i < end; i += kBlock) {
      const std::int64_t count = std::min(kBlock, end - i);
      load_row(a.data, a.dtype, i, 1, count, x);
      load_row(b.data, b.dtype, i, 1, count, y);
      for (std::int64_t j = 0; j < count; ++j) x[j] = combine(x[j], y[j]);
      store_row(x, out.data, out.dtype, i, 1, count);
    }
  });
}

void axpby(const Stream& /*stream*/, float alpha, ConstView a, float beta, ConstView b, View out) {
  combine_contiguous(a, b, out, [=](float x, float y) { return alpha * x + beta * y; });
}

void scale(const Stream& /*stream*/, float factor, ConstView x, View out) {
  RowLoop(x, out).run([&](std::int64_t from, std::int64_t from_stride, std::int64_t to,
                          std::int64_t to_stride, std::int64_t count) {
    float row[kBlock];
    for (std::int64_t i = 0; i < count; i += kBlock) {
      const std::int64_t length = std::min(kBlock, count - i);
      load_row(x.data, x.dtype, from + i * from_stride, from_stride, length, row);
      for (std::int64_t j = 0; j < length; ++j) row[j] *= factor;
      store_row(row, out.data, out.dtype, to + i * to_stride, to_stride, length);
    }
  });
}

void multiply(const Stream& /*stream*/, ConstView a, ConstView b, View out) {
  combine_contiguous(a, b, out, [](float x, float y) { return x * y; });
}

void fill(const Stream& /*stream*/, float value, View out) {
  const std::vector<float> row(kBlock, value);
  RowLoop(out, out).run([&](std::int64_t to, std::int64_t stride, std::int64_t /*same*/,
                            std::int64_t /*same_stride*/, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += kBlock) {
      store_row(row.data(), out.data, out.dtype, to + i * stride, stride,
                std::min(kBlock, count - i));
    }
  });
}

void add_bias(const Stream& /*stream*/, ConstView x, ConstView bias, View out) {
  const std::int64_t rows = x.shape[0];
  const std::int64_t cols = x.shape[1];
  std::vector<float> terms(static_cast<std::size_t>(cols));
  load_row(bias.data, bias.dtype, 0, bias.strides[0], cols, terms.data());
  parallel_rows(rows, cols, [&](std::int64_t row) {
    float values[kBlock];
    for (std::int64_t c = 0; c < cols; c += kBlock) {
      const std::int64_t count = std::min(kBlock, cols - c);
      load_row(x.data, x.dtype, row * cols + c, 1, count, values);
      for (std::int64_t j = 0; j < count; ++j) values[j] += terms[static_cast<std::size_t>(c + j)];
      store_row(values, out.data, out.dtype, row * cols + c, 1, count);
    }
  });
}

}  // namespace

void register_elementwise_kernels(Backend& backend) {
  backend.add<ops::CastKernel>("exact", &cast);
  backend.add<ops::AxpbyKernel>("exact", &axpby);
  backend.add<ops::ScaleKernel>("exact", &scale);
  backend.add<ops::MultiplyKernel>("exact", &multiply);
  backend.add<ops::FillKernel>("exact", &fill);
  backend.add<ops::AddBiasKernel>("exact", &add_bias);
  register_reduction_kernels(backend);
}

}  // namespace kitchen::reference
