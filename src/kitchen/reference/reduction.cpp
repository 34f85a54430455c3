#include "kitchen/reference/reduction.h"

#include "kitchen/ops/elementwise.h"
#include "kitchen/reference/elementwise.h"
#include "kitchen/reference/parallel.h"
#include "kitchen/reference/row_io.h"

#include <vector>

namespace kitchen::reference {

namespace {

constexpr int kLanes = 8;
constexpr std::int64_t kRowChunk = 128;     ///< rows of one fp32 partial sum (numerics.md S5.3)
constexpr std::int64_t kColumnBlock = 128;  ///< columns that one thread sums

template <class Term>
double sum_terms(const float* values, std::int64_t count, const Term& term) {
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += term(values[i + lane]);
  }
  for (int lane = 0; i + lane < count; ++lane) lanes[lane] += term(values[i + lane]);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

/// Columns [begin, end) of sum_rows.
void sum_column_block(const ConstView& x, std::int64_t begin, std::int64_t end, float* out,
                      bool accumulate) {
  const std::int64_t count = end - begin;
  float row[kColumnBlock];
  float chunk[kColumnBlock];
  float total[kColumnBlock] = {};
  for (std::int64_t r0 = 0; r0 < x.shape[0]; r0 += kRowChunk) {
    std::fill_n(chunk, kColumnBlock, 0.0f);
    for (std::int64_t r = r0; r < std::min(x.shape[0], r0 + kRowChunk); ++r) {
      load_row(x.data, x.dtype, r * x.strides[0] + begin, 1, count, row);
      for (std::int64_t c = 0; c < count; ++c) chunk[c] += row[c];
    }
    for (std::int64_t c = 0; c < count; ++c) total[c] += chunk[c];
  }
  for (std::int64_t c = 0; c < count; ++c) {
    out[begin + c] = accumulate ? out[begin + c] + total[c] : total[c];
  }
}

void sum_rows(const Stream& /*stream*/, ConstView x, View out, bool accumulate) {
  auto* sums = static_cast<float*>(out.data);
  const std::int64_t cols = x.shape[1];
  parallel_rows(ceil_div(cols, kColumnBlock), kColumnBlock * x.shape[0], [&](std::int64_t block) {
    const std::int64_t begin = block * kColumnBlock;
    sum_column_block(x, begin, std::min(cols, begin + kColumnBlock), sums, accumulate);
  });
}

void sum_all(const Stream& /*stream*/, ConstView x, View out) {
  *static_cast<float*>(out.data) = static_cast<float>(sum_chunks(x, &sum_of, 0.0));
}

}  // namespace

double sum_of(const float* values, std::int64_t count) {
  return sum_terms(values, count, [](float v) { return static_cast<double>(v); });
}

double sum_of_squares(const float* values, std::int64_t count) {
  return sum_terms(values, count, [](float v) {
    const auto wide = static_cast<double>(v);
    return wide * wide;
  });
}

double sum_chunks(const ConstView& x, double (*sum)(const float*, std::int64_t), double start) {
  const std::int64_t numel = x.numel();
  std::vector<double> partial(static_cast<std::size_t>(ceil_div(numel, kSumChunk)));
  parallel_pieces(numel, kSumChunk, [&](std::int64_t begin, std::int64_t end) {
    float buffer[kSumChunk];
    const float* values = buffer;
    if (x.dtype == DType::float32) {
      values = static_cast<const float*>(x.data) + begin;
    } else {
      load_row(x.data, x.dtype, begin, 1, end - begin, buffer);
    }
    partial[static_cast<std::size_t>(begin / kSumChunk)] = sum(values, end - begin);
  });
  for (const double part : partial) start += part;
  return start;
}

void register_reduction_kernels(Backend& backend) {
  backend.add<ops::SumRowsKernel>("exact", &sum_rows);
  backend.add<ops::SumAllKernel>("exact", &sum_all);
}

}  // namespace kitchen::reference
