#include "kitchen/train/box.h"

#include "kitchen/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace kitchen::train {

namespace {

/// [begin, end) of the common part along each dimension, in global indices.
struct Range {
  std::int64_t begin;
  std::int64_t end;
};

std::vector<Range> common_ranges(const Box& a, const Box& b) {
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < a.shape.size(); ++i) {
    ranges.push_back({std::max(a.offset[i], b.offset[i]),
                      std::min(a.offset[i] + a.shape[i], b.offset[i] + b.shape[i])});
  }
  return ranges;
}

/// One side of a copy: bytes between neighbours along each dimension, and the box.
struct Side {
  const Box& box;
  Shape strides;
};

/// Copies dimension `dim` and below; the last dimension is contiguous on both sides.
void copy_level(const std::vector<Range>& ranges, std::size_t dim, std::int64_t element_bytes,
                const Side& source, const std::uint8_t* from, const Side& target,
                std::uint8_t* to) {
  if (dim == ranges.size()) {
    std::memcpy(to, from, static_cast<std::size_t>(element_bytes));
    return;
  }
  const Range range = ranges[dim];
  const auto start = [&](const Side& side, std::int64_t at) {
    return (at - side.box.offset[dim]) * side.strides[dim] * element_bytes;
  };
  if (dim + 1 == ranges.size()) {
    std::memcpy(to + start(target, range.begin), from + start(source, range.begin),
                static_cast<std::size_t>((range.end - range.begin) * element_bytes));
    return;
  }
  for (std::int64_t at = range.begin; at < range.end; ++at) {
    copy_level(ranges, dim + 1, element_bytes, source, from + start(source, at), target,
               to + start(target, at));
  }
}

}  // namespace

Box box_of(const NamedTensor& named) {
  const Shape& shape = named.tensor.shape();
  Box box{shape, Shape(shape.size(), 0), shape};
  if (!named.global_shape.empty()) {
    box.global_shape = named.global_shape;
    if (!named.global_offset.empty()) box.offset = named.global_offset;
  } else if (named.tensor.shard() && !named.tensor.shard()->global_shape.empty()) {
    if (named.tensor.shard()->parts > 1 && named.tensor.shard()->global_shape != shape) {
      throw NotImplementedError(
          fmt::format("checkpoint: tensor '{}' holds {} pieces of its whole; write each as a tensor of "
                      "its own",
                      named.name, named.tensor.shard()->parts));
    }
    box.global_shape = named.tensor.shard()->global_shape;
    box.offset = named.tensor.shard()->global_offset;
  }
  bool inside = box.global_shape.size() == shape.size() && box.offset.size() == shape.size();
  for (std::size_t i = 0; inside && i < shape.size(); ++i) {
    inside = box.offset[i] >= 0 && box.offset[i] + shape[i] <= box.global_shape[i];
  }
  if (!inside) {
    throw ValueError(fmt::format(
        "checkpoint: tensor '{}' of shape {} at offset {} is no part of the global shape {}; give "
        "shape, offset and global shape of equal rank",
        named.name, to_string(shape), to_string(box.offset), to_string(box.global_shape)));
  }
  return box;
}

Box box_of(const CheckpointPiece& piece) {
  return {piece.shape, piece.global_offset, piece.global_shape};
}

std::int64_t intersection_numel(const Box& a, const Box& b) {
  std::int64_t count = 1;
  for (const Range& range : common_ranges(a, b)) {
    count *= std::max<std::int64_t>(range.end - range.begin, 0);
  }
  return count;
}

void copy_intersection(const Box& source, const std::vector<std::uint8_t>& source_bytes,
                       const Box& target, std::vector<std::uint8_t>& target_bytes,
                       std::int64_t element_bytes) {
  if (intersection_numel(source, target) == 0) return;
  copy_level(common_ranges(source, target), 0, element_bytes,
             {source, contiguous_strides(source.shape)}, source_bytes.data(),
             {target, contiguous_strides(target.shape)}, target_bytes.data());
}

}  // namespace kitchen::train
