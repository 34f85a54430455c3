#include "kitchen/parallel/rank_grid.h"

#include "kitchen/base/error.h"

namespace kitchen {

namespace {

/// `count` ranks from the one with coordinate 0 along an axis of that size, `stride` apart, that
/// holds `rank`.
std::vector<int> along(int rank, int count, int stride) {
  const int first = rank - rank / stride % count * stride;
  std::vector<int> ranks;
  for (int i = 0; i < count; ++i) ranks.push_back(first + i * stride);
  return ranks;
}

void require_divides(int world_size, int product, const std::string& names) {
  if (world_size % product == 0) return;
  throw ValueError("world size " + std::to_string(world_size) + " is not divisible by " + names +
                   " = " + std::to_string(product) + "; start a multiple of " +
                   std::to_string(product) + " ranks or choose smaller sizes");
}

void require_positive(const char* name, int size) {
  if (size >= 1) return;
  throw ValueError(std::string("RankGrid: the ") + name + " parallel size is " +
                   std::to_string(size) + "; it must be at least 1");
}

void require_one(const char* name, int size) {
  require_positive(name, size);
  if (size == 1) return;
  throw NotImplementedError(std::string(name) + " parallel size " + std::to_string(size) +
                            ": only 1 is supported; use tensor, expert and data parallelism");
}

}  // namespace

RankGrid::RankGrid(int world_size, const ParallelSizes& sizes)
    : world_size_(world_size), sizes_(sizes) {
  if (sizes_.expert_tensor == 0) sizes_.expert_tensor = sizes_.tensor;
  require_positive("tensor", sizes_.tensor);
  require_positive("expert", sizes_.expert);
  require_positive("expert tensor", sizes_.expert_tensor);
  require_one("pipeline", sizes_.pipeline);
  require_one("context", sizes_.context);
  require_positive("world", world_size_);
  require_divides(world_size_, sizes_.tensor, "TP x PP x CP");
  require_divides(world_size_, sizes_.expert_tensor * sizes_.expert, "ETP x EP x PP");
}

std::vector<int> RankGrid::tp(int rank) const {
  return along(rank, sizes_.tensor, 1);
}

std::vector<int> RankGrid::dp(int rank) const {
  return along(rank, data_size(), sizes_.tensor);
}

std::vector<int> RankGrid::expt_tp(int rank) const {
  return along(rank, sizes_.expert_tensor, 1);
}

std::vector<int> RankGrid::ep(int rank) const {
  return along(rank, sizes_.expert, sizes_.expert_tensor);
}

std::vector<int> RankGrid::tp_ep(int rank) const {
  return along(rank, sizes_.expert * sizes_.expert_tensor, 1);
}

std::vector<int> RankGrid::expt_dp(int rank) const {
  return along(rank, expert_data_size(), sizes_.expert * sizes_.expert_tensor);
}

std::vector<int> RankGrid::world() const {
  return along(0, world_size_, 1);
}

}  // namespace kitchen
