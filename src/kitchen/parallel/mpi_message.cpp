#include "kitchen/parallel/mpi_message.h"

#include "kitchen/base/error.h"

#include <algorithm>
#include <limits>

namespace kitchen::parallel {

namespace {

/// kind, dtype, reduction, root, number of counts; then the counts and the receive counts.
constexpr std::size_t kFirstCount = 5;

}  // namespace

ByteParts::ByteParts(const std::vector<std::int64_t>& counts, DType dtype) {
  std::int64_t offset = 0;
  for (const std::int64_t count : counts) {
    const std::int64_t size = count * size_of(dtype);
    if (offset + size > std::numeric_limits<int>::max()) {
      throw NotImplementedError(
          "a collective of " + std::to_string(offset + size) +
          " bytes over MPI; one call moves at most 2147483647, split the tensor");
    }
    bytes.push_back(static_cast<int>(size));
    offsets.push_back(static_cast<int>(offset));
    offset += size;
  }
}

std::size_t ByteParts::total() const {
  return bytes.empty() ? 0 : static_cast<std::size_t>(offsets.back() + bytes.back());
}

std::vector<std::int64_t> even_parts(std::int64_t count, std::size_t parts) {
  const auto cut = [&](std::size_t i) {
    return count * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(parts);
  };
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < parts; ++i) sizes.push_back(cut(i + 1) - cut(i));
  return sizes;
}

std::vector<std::int64_t> encode_call(const CollectiveCall& call, std::size_t size) {
  std::vector<std::int64_t> words{static_cast<std::int64_t>(call.kind),
                                  static_cast<std::int64_t>(call.dtype),
                                  static_cast<std::int64_t>(call.reduce), call.root,
                                  static_cast<std::int64_t>(call.counts.size())};
  words.insert(words.end(), call.counts.begin(), call.counts.end());
  words.resize(kFirstCount + size);
  words.insert(words.end(), call.recv_counts.begin(), call.recv_counts.end());
  words.resize(kFirstCount + 2 * size);
  return words;
}

CollectiveCall decode_call(const std::int64_t* words, std::size_t size) {
  CollectiveCall call;
  call.kind = static_cast<CollectiveKind>(words[0]);
  call.dtype = static_cast<DType>(words[1]);
  call.reduce = static_cast<ReduceOp>(words[2]);
  call.root = static_cast<int>(words[3]);
  const std::int64_t* counts = words + kFirstCount;
  call.counts.assign(counts, counts + words[4]);
  if (call.kind == CollectiveKind::all_to_all)
    call.recv_counts.assign(counts + size, counts + 2 * size);
  return call;
}

}  // namespace kitchen::parallel
