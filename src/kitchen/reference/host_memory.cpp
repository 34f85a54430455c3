#include "kitchen/reference/host_memory.h"

#include "kitchen/reference/row_loop.h"

#include <cstring>

namespace kitchen::reference {

namespace {

/// One run of RowLoop. `Word` has the size of an element.
template <class Word>
void copy_run(const Word* from, std::int64_t from_stride, Word* to, std::int64_t to_stride,
              std::int64_t count) {
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(Word));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
}

template <class Word>
void copy_words(const ConstView& source, const View& target) {
  RowLoop(source, target)
      .run([&](std::int64_t from, std::int64_t from_stride, std::int64_t to, std::int64_t to_stride,
               std::int64_t count) {
        copy_run(static_cast<const Word*>(source.data) + from, from_stride,
                 static_cast<Word*>(target.data) + to, to_stride, count);
      });
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

// The calling thread is the one stream of the CPU: it has always finished what came before.
void synchronize(const Stream& /*stream*/) {}

Stream create_stream() { return {}; }

void destroy_stream(const Stream& /*stream*/) {}

void copy_strided(const Stream& /*stream*/, ConstView source, View target) {
  switch (size_of(source.dtype)) {
    case 1:
      copy_words<std::uint8_t>(source, target);
      break;
    case 2:
      copy_words<std::uint16_t>(source, target);
      break;
    case 4:
      copy_words<std::uint32_t>(source, target);
      break;
    default:
      copy_words<std::uint64_t>(source, target);
      break;
  }
}

}  // namespace kitchen::reference
