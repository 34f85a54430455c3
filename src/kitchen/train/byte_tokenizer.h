#pragma once

#include "kitchen/base/error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kitchen::train {

/// One token a byte: 256 ids, no training, no unknown text. UTF-8 goes through unchanged.
class ByteTokenizer {
 public:
  [[nodiscard]] static std::string name() { return "byte"; }
  [[nodiscard]] static std::int64_t vocab_size() { return 256; }

  /// Id = value of the byte, 0 to 255.
  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text) const {
    std::vector<std::int64_t> ids;
    ids.reserve(text.size());
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }

  /// Inverse of encode. The result need not be valid UTF-8 when a model made the ids.
  /// @throws ValueError naming the id and its place if one is outside of 0 to 255.
  [[nodiscard]] std::string decode(const std::vector<std::int64_t>& ids) const {
    std::string text;
    text.reserve(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0 || ids[i] >= vocab_size()) {
        throw ValueError("ByteTokenizer: id " + std::to_string(ids[i]) + " at place " +
                         std::to_string(i) +
                         ", expected 0 to 255; the model has a larger vocabulary");
      }
      text.push_back(static_cast<char>(static_cast<unsigned char>(ids[i])));
    }
    return text;
  }
};

}  // namespace kitchen::train
