#include "kitchen/reference/dropout.h"

#include "kitchen/ops/dropout.h"
#include "kitchen/reference/parallel.h"
#include "kitchen/reference/row_io.h"

#include <vector>

namespace kitchen::reference {

namespace {

constexpr std::int64_t kBlock = 1024;  ///< elements that are widened at a time; a multiple of 4

/// In place: values of the elements [first, first + count) dropped or divided by 1 - p. `first` is
/// a multiple of kBlock, so that whole Philox blocks are used.
void drop_block(float* values, std::int64_t first, std::int64_t count, float p, const Rng& rng) {
  if (p == 0.0f) return;
  std::uint32_t words[kBlock];
  fill_words(rng, static_cast<std::uint64_t>(first) / 4, ceil_div(count, 4), words);
  const float keep_probability = 1.0f - p;
  for (std::int64_t i = 0; i < count; ++i) {
    const float uniform = static_cast<float>(static_cast<std::int32_t>(words[i] >> 8)) * 0x1p-24f;
    values[i] = uniform >= p ? values[i] / keep_probability : 0.0f;
  }
}

/// Rounds a row of fp32 to `dtype` and widens it again.
void round_row(float* row, DType dtype, std::int64_t count) {
  if (dtype == DType::float32) return;
  std::uint16_t narrow[kBlock];
  store_row(row, narrow, dtype, 0, 1, count);
  load_row(narrow, dtype, 0, 1, count, row);
}

/// row[i] += terms[(col + i) mod size], run by run.
void add_wrapped(const std::vector<float>& terms, std::int64_t col, std::int64_t count,
                 float* row) {
  const auto cols = static_cast<std::int64_t>(terms.size());
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t run = std::min(count - i, cols - col);
    const float* from = terms.data() + col;
    for (std::int64_t j = 0; j < run; ++j) row[i + j] += from[j];
    i += run;
    col = 0;
  }
}

template <class Body>
void for_blocks(std::int64_t numel, const Body& body) {
  static_assert(kParallelGrain % kBlock == 0, "blocks must not straddle the pieces of threads");
  parallel_pieces(numel, kParallelGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += kBlock) body(i, std::min(kBlock, end - i));
  });
}

void dropout(const Stream& /*stream*/, ConstView x, float p, const Rng& rng, View out) {
  for_blocks(x.numel(), [&](std::int64_t first, std::int64_t count) {
    float row[kBlock];
    load_row(x.data, x.dtype, first, 1, count, row);
    drop_block(row, first, count, p, rng);
    store_row(row, out.data, out.dtype, first, 1, count);
  });
}

void bias_dropout_add(const Stream& /*stream*/, ConstView x, ConstView bias, ConstView residual,
                      float p, const Rng& rng, View out) {
  const std::int64_t cols = x.shape[1];
  std::vector<float> terms;
  if (bias.defined()) {
    terms.resize(static_cast<std::size_t>(cols));
    load_row(bias.data, bias.dtype, 0, bias.strides[0], cols, terms.data());
  }
  for_blocks(x.numel(), [&](std::int64_t first, std::int64_t count) {
    float row[kBlock];
    float former[kBlock];
    load_row(x.data, x.dtype, first, 1, count, row);
    if (!terms.empty()) {
      add_wrapped(terms, first % cols, count, row);
      round_row(row, x.dtype, count);
    }
    drop_block(row, first, count, p, rng);
    round_row(row, x.dtype, count);
    load_row(residual.data, residual.dtype, first, 1, count, former);
    for (std::int64_t i = 0; i < count; ++i) row[i] = former[i] + row[i];
    store_row(row, out.data, out.dtype, first, 1, count);
  });
}

}  // namespace

void register_dropout_kernels(Backend& backend) {
  backend.add<ops::DropoutKernel>("exact", &dropout);
  backend.add<ops::BiasDropoutAddKernel>("exact", &bias_dropout_add);
}

}  // namespace kitchen::reference
