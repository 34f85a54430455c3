#pragma once

#include "kitchen/train/checkpoint.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kitchen::train {

/// A rectangular part of a logical tensor.
struct Box {
  Shape shape;
  Shape offset;
  Shape global_shape;
};

/// Where a tensor lies in its whole: its explicit place, else its ShardInfo, else it is the whole.
/// @throws ValueError naming the tensor if the ranks differ or the part reaches outside of the
/// whole.
Box box_of(const NamedTensor& named);

Box box_of(const CheckpointPiece& piece);

/// Number of elements that both boxes hold; the ranks must agree.
std::int64_t intersection_numel(const Box& a, const Box& b);

/// Copies the common elements from the row-major bytes of `source` to those of `target`.
void copy_intersection(const Box& source, const std::vector<std::uint8_t>& source_bytes,
                       const Box& target, std::vector<std::uint8_t>& target_bytes,
                       std::int64_t element_bytes);

}  // namespace kitchen::train
