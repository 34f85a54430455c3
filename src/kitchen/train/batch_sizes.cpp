#include "kitchen/train/batch_sizes.h"

#include "kitchen/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace kitchen::train {

namespace {

/// "5 or 2", the divisors of `per_rank` around `wanted`; empty if there is no per-rank share.
std::string nearest_divisors(std::int64_t per_rank, std::int64_t wanted) {
  std::int64_t below = std::min(wanted, per_rank);
  while (per_rank % below != 0) --below;
  std::int64_t above = std::min(wanted, per_rank);
  while (per_rank % above != 0) ++above;
  if (above == below) return std::to_string(below);
  return fmt::format("{} or {}", below, above);
}

}  // namespace

std::int64_t num_micro_batches(std::int64_t global_batch_size, std::int64_t micro_batch_size,
                               std::int64_t data_parallel_size) {
  const bool positive = global_batch_size > 0 && micro_batch_size > 0 && data_parallel_size > 0;
  const std::int64_t per_step = positive ? micro_batch_size * data_parallel_size : 1;
  if (positive && global_batch_size % per_step == 0) return global_batch_size / per_step;
  const std::string found =
      fmt::format("--global-batch-size {}, --micro-batch-size {}, data-parallel size {}",
                  global_batch_size, micro_batch_size, data_parallel_size);
  if (!positive) throw ValueError(found + ": all three must be at least 1");
  const std::int64_t below = global_batch_size / per_step * per_step;
  std::string way_out = fmt::format("--global-batch-size {}", below + per_step);
  if (below > 0) way_out += fmt::format(" or {}", below);
  if (global_batch_size % data_parallel_size == 0) {
    way_out +=
        fmt::format(", or --micro-batch-size {}",
                    nearest_divisors(global_batch_size / data_parallel_size, micro_batch_size));
  }
  throw ValueError(
      fmt::format("{}: the global batch is no multiple of micro batch x data-parallel size = {}; "
                  "nearest valid: {}",
                  found, per_step, way_out));
}

}  // namespace kitchen::train
