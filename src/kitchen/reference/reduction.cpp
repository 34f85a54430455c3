#include "kitchen/reference/reduction.h"

#include "kitchen/ops/elementwise.h"
#include "kitchen/reference/elementwise.h"
#include "kitchen/reference/parallel.h"
#include "kitchen/reference/row_io.h"

#include <vector>

namespace kitchen::reference {

namespace {

constexpr int kLanes = 8;
constexpr std::int64_t kRowChunk = 128;      ///< rows of one fp32 partial sum (numerics.md S5.3)
constexpr std::int64_t kColumnBlock = 1024;  ///< columns that are summed at a time

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

/// Sums of columns [begin, end) over the rows of one chunk.
void sum_row_chunk(const ConstView& x, std::int64_t first_row, std::int64_t begin, std::int64_t end,
                   float* sums) {
  const std::int64_t count = end - begin;
  float row[kColumnBlock];
  std::fill_n(sums, count, 0.0f);
  for (std::int64_t r = first_row; r < std::min(x.shape[0], first_row + kRowChunk); ++r) {
    load_row(x.data, x.dtype, r * x.strides[0] + begin, 1, count, row);
    for (std::int64_t c = 0; c < count; ++c) sums[c] += row[c];
  }
}

void sum_rows(const Stream& /*stream*/, ConstView x, View out, bool accumulate) {
  const std::int64_t cols = x.shape[1];
  const std::int64_t chunks = ceil_div(x.shape[0], kRowChunk);
  const std::int64_t blocks = ceil_div(cols, kColumnBlock);
  std::vector<float> partial(static_cast<std::size_t>(chunks * cols));
  parallel_rows(chunks * blocks, kRowChunk * std::min(cols, kColumnBlock), [&](std::int64_t index) {
    const std::int64_t chunk = index / blocks;
    const std::int64_t begin = index % blocks * kColumnBlock;
    sum_row_chunk(x, chunk * kRowChunk, begin, std::min(cols, begin + kColumnBlock),
                  partial.data() + chunk * cols + begin);
  });
  auto* sums = static_cast<float*>(out.data);
  std::vector<float> total(static_cast<std::size_t>(cols), 0.0f);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const float* part = partial.data() + chunk * cols;
    for (std::int64_t c = 0; c < cols; ++c) total[static_cast<std::size_t>(c)] += part[c];
  }
  for (std::int64_t c = 0; c < cols; ++c) {
    const float sum = total[static_cast<std::size_t>(c)];
    sums[c] = accumulate ? sums[c] + sum : sum;
  }
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
