#pragma once

#include <string>
#include <vector>

namespace kitchen {

/// How many ranks share each kind of work. The data-parallel sizes follow from the world's.
struct ParallelSizes {
  int tensor = 1;
  int pipeline = 1;  ///< must be 1
  int context = 1;   ///< must be 1
  int expert = 1;
  int expert_tensor = 0;  ///< 0: as `tensor`
};

/// Which ranks form which group, by Megatron's order: tensor parallel ranks are neighbours, then
/// data parallel; for experts expert-tensor, then expert, then expert-data parallel. A pure
/// function of the sizes.
class RankGrid {
 public:
  /// @throws ValueError naming the world size and the product that does not divide it, or a size
  /// below 1;
  ///         NotImplementedError for pipeline or context parallelism.
  RankGrid(int world_size, const ParallelSizes& sizes);

  [[nodiscard]] const ParallelSizes& sizes() const { return sizes_; }
  [[nodiscard]] int world_size() const { return world_size_; }
  [[nodiscard]] int data_size() const { return world_size_ / sizes_.tensor; }
  [[nodiscard]] int expert_data_size() const {
    return world_size_ / (sizes_.expert * sizes_.expert_tensor);
  }

  /// Global ranks, ascending, of the group of `rank`.
  [[nodiscard]] std::vector<int> tp(int rank) const;
  [[nodiscard]] std::vector<int> dp(int rank) const;
  [[nodiscard]] std::vector<int> expt_tp(int rank) const;
  [[nodiscard]] std::vector<int> ep(int rank) const;
  [[nodiscard]] std::vector<int> tp_ep(
      int rank) const;  ///< all holders of parts of one set of experts
  [[nodiscard]] std::vector<int> expt_dp(int rank) const;
  [[nodiscard]] std::vector<int> world() const;

 private:
  int world_size_;
  ParallelSizes sizes_;
};

}  // namespace kitchen
