#include "cuda/flash_attention/attention_tiles.cuh"

namespace kitchen::cuda {

namespace {

// Beyond every sequence, far from overflow.
constexpr std::int64_t kUnlimited = std::int64_t{1} << 40;

std::vector<Segment> segments_of(const ConstView& q, const ConstView& k,
                                 const ops::FlashAttentionOptions& options) {
  const auto& q_offsets = options.cu_seqlens_q;
  const auto& k_offsets = options.cu_seqlens_k;
  std::vector<Segment> segments;
  for (std::size_t i = 0; i + 1 < q_offsets.size(); ++i) {
    segments.push_back({q_offsets[i], q_offsets[i + 1] - q_offsets[i], k_offsets[i],
                        k_offsets[i + 1] - k_offsets[i]});
  }
  segments.push_back({q_offsets.back(), q.shape[0] - q_offsets.back(), k_offsets.back(), 0});
  segments.push_back({q_offsets.back(), 0, k_offsets.back(), k.shape[0] - k_offsets.back()});
  return segments;
}

std::int64_t length_of(const Segment& segment, TileList::Side side) {
  return side == TileList::Side::queries ? segment.q_length : segment.k_length;
}

/// Empty where the whole of dimension 0 is one sequence.
std::vector<Tile> tiles_of(const ConstView& q, const ConstView& k,
                           const ops::FlashAttentionOptions& options, TileList::Side side) {
  std::vector<Tile> tiles;
  if (options.cu_seqlens_q.empty()) return tiles;
  for (const Segment& segment : segments_of(q, k, options)) {
    for (std::int64_t first = 0; first < length_of(segment, side); first += kTileRows) {
      tiles.push_back({segment, first});
    }
  }
  return tiles;
}

}  // namespace

Mask mask_of(const ops::FlashAttentionOptions& options) {
  const auto limited = [](std::int64_t size) {
    return size < 0 || size > kUnlimited ? kUnlimited : size;
  };
  return {limited(options.window.first), options.causal ? 0 : limited(options.window.second)};
}

TileList::TileList(const Stream& stream, const ConstView& q, const ConstView& k,
                   const ops::FlashAttentionOptions& options, Side side)
    : TileList(stream, tiles_of(q, k, options, side), {0, q.shape[0], 0, k.shape[0]}, side) {}

TileList::TileList(const Stream& stream, const std::vector<Tile>& list, const Segment& whole,
                   Side side)
    : whole_(whole),
      memory_(stream, static_cast<std::int64_t>(list.size() * sizeof(Tile))),
      count_(static_cast<unsigned>(list.size())) {
  if (list.empty()) {
    count_ = static_cast<unsigned>(ceil_div(length_of(whole, side), kTileRows));
    return;
  }
  // The runtime has read pageable memory when the call returns.
  KITCHEN_CUDA_CHECK(cudaMemcpyAsync(memory_.as<Tile>(), list.data(), list.size() * sizeof(Tile),
                                     cudaMemcpyHostToDevice, native(stream)));
}

}  // namespace kitchen::cuda
