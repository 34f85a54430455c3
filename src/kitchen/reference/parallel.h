#pragma once

#include <algorithm>
#include <cstdint>

/// @file  parallel.h
/// @brief Loops over OpenMP threads whose pieces depend on the size alone, never on the thread
/// count.

namespace kitchen::reference {

/// Elements below which a loop is not worth waking threads for.
inline constexpr std::int64_t kParallelGrain = 16384;

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Calls body(begin, end) for the pieces [0, piece), [piece, 2·piece), ... of [0, count).
template <class Body>
void parallel_pieces(std::int64_t count, std::int64_t piece, const Body& body) {
  const std::int64_t pieces = ceil_div(count, piece);
#pragma omp parallel for schedule(static) if (pieces > 1)
  for (std::int64_t i = 0; i < pieces; ++i) {
    body(i * piece, std::min(count, (i + 1) * piece));
  }
}

/// Calls body(row) for every row; serial where rows · cols is below the grain.
template <class Body>
void parallel_rows(std::int64_t rows, std::int64_t cols, const Body& body) {
  const std::int64_t piece =
      std::max<std::int64_t>(1, kParallelGrain / std::max<std::int64_t>(cols, 1));
  parallel_pieces(rows, piece, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(row);
  });
}

}  // namespace kitchen::reference
