#pragma once

#include <cstdint>
#include <cstring>

namespace kitchen::reference {

/// to[c][r] = from[r][c] of a block of 16x16 bytes whose rows lie `from_pitch` and `to_pitch` bytes
/// apart.
///
/// Interleaving row i with row i + 8 doubles the distance of neighbours within a row; after four
/// times they are a column.
inline void transpose_16x16(const std::uint8_t* from, std::int64_t from_pitch, std::uint8_t* to,
                            std::int64_t to_pitch) {
  using Row [[gnu::vector_size(16)]] = std::uint8_t;
  Row rows[16];
  Row mixed[16];
  for (int i = 0; i < 16; ++i) std::memcpy(&rows[i], from + i * from_pitch, sizeof(Row));
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 8; ++i) {
      mixed[2 * i] = __builtin_shufflevector(rows[i], rows[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4,
                                             20, 5, 21, 6, 22, 7, 23);
      mixed[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + 8], 8, 24, 9, 25, 10, 26, 11, 27,
                                                 12, 28, 13, 29, 14, 30, 15, 31);
    }
    std::memcpy(rows, mixed, sizeof rows);
  }
  for (int i = 0; i < 16; ++i) std::memcpy(to + i * to_pitch, &rows[i], sizeof(Row));
}

}  // namespace kitchen::reference
