#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kitchen {

/// Offsets of sequences that are packed into one row of tokens.
struct PackedSeqParams {
  std::string qkv_format = "thd";
  std::vector<std::int64_t> cu_seqlens_q;   ///< first token of each sequence, and the end
  std::vector<std::int64_t> cu_seqlens_kv;
};

}  // namespace kitchen
