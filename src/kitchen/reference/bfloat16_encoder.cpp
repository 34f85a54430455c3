#include "kitchen/reference/bfloat16_encoder.h"

#include "kitchen/formats/codec.h"
#include "kitchen/reference/encode_lanes.h"

#include <algorithm>

namespace kitchen::reference {

namespace {

/// Elements that are searched for a NaN before they are encoded; they stay in the L1 cache.
constexpr std::int64_t kChunk = 1024;

bool holds_nan(const std::uint16_t* values, std::int64_t n) {
  std::int16_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    largest = std::max(largest, static_cast<std::int16_t>(values[i] & 0x7FFF));
  }
  return largest > 0x7F80;
}

template <class Format>
void encode_singly(const std::uint16_t* values, float scale, std::uint8_t* codes, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    codes[i] = static_cast<std::uint8_t>(
        formats::encode(formats::bf16_to_float(values[i]) * scale, Format::spec()));
  }
}

template <class Format>
void encode_row(const std::uint16_t* values, float scale, std::uint8_t* codes, std::int64_t n) {
  const LaneScales scales = same_scale<Format>(scale);
  for (std::int64_t start = 0; start < n; start += kChunk) {
    const std::int64_t end = std::min(n, start + kChunk);
    std::int64_t done = start;
    if (is_plain_scale(scale) && !holds_nan(values + start, end - start)) {
      for (; done + kEncodeStep <= end; done += kEncodeStep) {
        // The search for a NaN runs a chunk at a time, too short for the processor to read ahead.
        __builtin_prefetch(values + done + kChunk);
        encode_step<Format>(values + done, scales, scales, codes + done);
      }
    }
    encode_singly<Format>(values + done, scale, codes + done, end - done);
  }
}

}  // namespace

EncodeBfloat16Row bfloat16_row_encoder(const formats::FloatSpec& spec) {
  if (spec == formats::kE4M3) return &encode_row<formats::E4M3>;
  if (spec == formats::kE5M2) return &encode_row<formats::E5M2>;
  if (spec == formats::kE2M1) return &encode_row<formats::E2M1>;
  return nullptr;
}

}  // namespace kitchen::reference
