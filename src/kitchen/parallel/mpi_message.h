#pragma once

#include "kitchen/parallel/collective_call.h"

/// @file  mpi_message.h
/// @brief What goes through MPI, as bytes and integers of MPI's types.

namespace kitchen::parallel {

/// Bytes of each part and where it starts.
struct ByteParts {
  std::vector<int> bytes;
  std::vector<int> offsets;

  /// @throws NotImplementedError if all together are more than 2147483647 bytes, MPI's largest
  /// count.
  ByteParts(const std::vector<std::int64_t>& counts, DType dtype);
  [[nodiscard]] std::size_t total() const;
};

/// `count` elements in `parts` nearly equal parts.
std::vector<std::int64_t> even_parts(std::int64_t count, std::size_t parts);

/// A call of a group of `size` ranks as numbers of a fixed length, so that ranks can exchange
/// theirs; memory addresses stay out.
std::vector<std::int64_t> encode_call(const CollectiveCall& call, std::size_t size);

/// Inverse of encode_call.
CollectiveCall decode_call(const std::int64_t* words, std::size_t size);

}  // namespace kitchen::parallel
