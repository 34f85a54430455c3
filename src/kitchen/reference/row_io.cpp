#include "kitchen/reference/row_io.h"

namespace kitchen::reference {

namespace {

template <class Io>
void load_elements(const typename Io::Storage* from, std::int64_t stride, std::int64_t count,
                   float* out) {
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = Io::load(from[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) out[i] = Io::load(from[i * stride]);
  }
}

template <class Io>
void store_elements(const float* row, std::int64_t stride, std::int64_t count,
                    typename Io::Storage* to) {
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = Io::store(row[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i * stride] = Io::store(row[i]);
  }
}

}  // namespace

void load_row(const void* data, DType dtype, std::int64_t offset, std::int64_t stride,
              std::int64_t count, float* out) {
  with_io(dtype, [&](auto io) {
    using Io = decltype(io);
    const auto* from = static_cast<const typename Io::Storage*>(data) + offset;
    load_elements<Io>(from, stride, count, out);
  });
}

void store_row(const float* row, void* data, DType dtype, std::int64_t offset, std::int64_t stride,
               std::int64_t count) {
  with_io(dtype, [&](auto io) {
    using Io = decltype(io);
    auto* to = static_cast<typename Io::Storage*>(data) + offset;
    store_elements<Io>(row, stride, count, to);
  });
}

}  // namespace kitchen::reference
