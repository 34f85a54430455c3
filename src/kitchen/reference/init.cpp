#include "kitchen/reference/init.h"

#include "kitchen/base/rng.h"
#include "kitchen/ops/init.h"
#include "kitchen/reference/parallel.h"
#include "kitchen/reference/row_io.h"

namespace kitchen::reference {

namespace {

constexpr std::int64_t kBlock = 1024;

/// Normal numbers of the global indices [first, first + count), count <= kBlock.
void normal_run(const Rng& rng, std::int64_t first, std::int64_t count, double mean, double std,
                float* out) {
  // A Philox block holds the words of two numbers, an even index and the next one.
  const std::int64_t first_block = first / 2;
  const std::int64_t skipped = first % 2;
  std::uint32_t words[2 * kBlock + 8];
  fill_words(rng, static_cast<std::uint64_t>(first_block), ceil_div(skipped + count, 2), words);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t* pair = words + 2 * (skipped + i);
    out[i] = static_cast<float>(mean + std * normal_from_words(pair[0], pair[1]));
  }
}

/// Row-major index in the global tensor of the first element of local row `row` (all but the last
/// dim).
std::int64_t global_start(const View& out, const Shape& global_shape, const Shape& global_offset,
                          std::int64_t row) {
  std::int64_t index = global_offset.back();
  std::int64_t stride = global_shape.back();
  for (int i = out.rank - 2; i >= 0; --i) {
    const auto dim = static_cast<std::size_t>(i);
    index += (global_offset[dim] + row % out.shape[dim]) * stride;
    row /= out.shape[dim];
    stride *= global_shape[dim];
  }
  return index;
}

void normal_init(const Stream& /*stream*/, std::uint64_t key, double mean, double std,
                 const Shape& global_shape, const Shape& global_offset, View out) {
  const std::int64_t numel = out.numel();
  if (numel == 0) return;
  const Rng rng{key, 0};
  const std::int64_t cols = out.shape[static_cast<std::size_t>(out.rank - 1)];
  const std::int64_t blocks = ceil_div(cols, kBlock);
  parallel_rows(numel / cols * blocks, std::min(cols, kBlock), [&](std::int64_t index) {
    const std::int64_t row = index / blocks;
    const std::int64_t col = index % blocks * kBlock;
    const std::int64_t count = std::min(kBlock, cols - col);
    float values[kBlock];
    normal_run(rng, global_start(out, global_shape, global_offset, row) + col, count, mean, std,
               values);
    store_row(values, out.data, out.dtype, row * cols + col, 1, count);
  });
}

}  // namespace

void register_init_kernels(Backend& backend) {
  backend.add<ops::NormalInitKernel>("exact", &normal_init);
}

}  // namespace kitchen::reference
