#include "kitchen/reference/host_memory.h"

#include <cstring>

namespace kitchen::reference {

namespace {

/// Copies dimension `dim` and below; the innermost run is one memcpy when both sides are dense there.
void copy_level(const ConstView& source, const View& target, int dim, const std::uint8_t* from,
                std::uint8_t* to, std::int64_t element_bytes) {
  if (dim == source.rank) {
    std::memcpy(to, from, static_cast<std::size_t>(element_bytes));
    return;
  }
  const auto axis = static_cast<std::size_t>(dim);
  const std::int64_t size = source.shape[axis];
  if (dim == source.rank - 1 && source.strides[axis] == 1 && target.strides[axis] == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(size * element_bytes));
    return;
  }
  for (std::int64_t i = 0; i < size; ++i) {
    copy_level(source, target, dim + 1, from + i * source.strides[axis] * element_bytes,
               to + i * target.strides[axis] * element_bytes, element_bytes);
  }
}

}  // namespace

void fill_bytes(const Stream& /*stream*/, void* data, int byte, std::int64_t bytes) {
  if (bytes > 0) std::memset(data, byte, static_cast<std::size_t>(bytes));
}

void copy_from_host(const Stream& /*stream*/, void* data, const void* host, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(data, host, static_cast<std::size_t>(bytes));
}

void copy_to_host(const Stream& /*stream*/, void* host, const void* data, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(host, data, static_cast<std::size_t>(bytes));
}

void copy_strided(const Stream& /*stream*/, ConstView source, View target) {
  if (source.numel() == 0) return;
  copy_level(source, target, 0, static_cast<const std::uint8_t*>(source.data),
             static_cast<std::uint8_t*>(target.data), size_of(source.dtype));
}

}  // namespace kitchen::reference
