#include "kitchen/reference/flash_attention.h"
#include "kitchen/reference/flash_attention_blocks.h"
#include "kitchen/reference/lane_sum.h"

#include <cmath>

namespace kitchen::reference {

namespace {

constexpr std::int64_t kQueryBlock = 64;

/// Scores are held [queries, keys] here: log-sum-exp and delta are known, so nothing is reduced
/// over keys, and the key block, which stays while queries pass, is the operand that is transposed.
struct Scratch {
  explicit Scratch(std::int64_t d)
      : width(round_up(d, kTileCols)),
        queries(block(kQueryBlock, width)),
        dout(block(kQueryBlock, width)),
        keys(block(kKeyBlock, width)),
        values(block(kKeyBlock, width)),
        key_columns(block(d, kKeyBlock)),
        value_columns(block(d, kKeyBlock)),
        probabilities(block(kQueryBlock, kKeyBlock)),
        dscores(block(kQueryBlock, kKeyBlock)),
        dkeys(block(kKeyBlock, width)),
        dvalues(block(kKeyBlock, width)) {}

  static std::vector<float> block(std::int64_t rows, std::int64_t cols) {
    return std::vector<float>(static_cast<std::size_t>(rows * cols));
  }

  std::int64_t width;                // d rounded up to whole tiles
  std::vector<float> queries;        // (kQueryBlock, width)
  std::vector<float> dout;           // (kQueryBlock, width)
  std::vector<float> keys;           // (kKeyBlock, width)
  std::vector<float> values;         // (kKeyBlock, width)
  std::vector<float> key_columns;    // (d, kKeyBlock)
  std::vector<float> value_columns;  // (d, kKeyBlock)
  std::vector<float> probabilities;  // (kQueryBlock, kKeyBlock), first scores
  std::vector<float> dscores;        // (kQueryBlock, kKeyBlock), first dP
  std::vector<float> dkeys;          // (kKeyBlock, width)
  std::vector<float> dvalues;        // (kKeyBlock, width)
  std::vector<float> dqueries;       // (group, padded_queries, width): sums over key blocks
};

struct Operands {
  ConstView dout, q, k, v, o, lse;
  View delta, dq, dk, dv;
  const ops::FlashAttentionOptions& options;
};

/// All of one segment and key head: the query heads of its group share dk and dv.
struct Task {
  const Segment* segment;
  std::int64_t batch;
  std::int64_t key_head;
  std::int64_t group;
  std::int64_t padded_queries;  // rows of one head in Scratch::dqueries
};

float* row_of(const View& view, const Task& task, std::int64_t head) {
  return static_cast<float*>(view.data) + task.batch * view.strides[0] + head * view.strides[1] +
         task.segment->q_begin;
}

const float* row_of(const ConstView& view, const Task& task, std::int64_t head) {
  return static_cast<const float*>(view.data) + task.batch * view.strides[0] +
         head * view.strides[1] + task.segment->q_begin;
}

/// delta = rowsum(dout·o) in fp32, of the rounded o.
template <class Io>
void compute_delta(const Operands& op, const Task& task, std::int64_t head) {
  const HeadRows<Io> dout(op.dout.data, op.dout.strides, task.segment->q_begin, task.batch, head);
  const HeadRows<Io> o(op.o.data, op.o.strides, task.segment->q_begin, task.batch, head);
  float* delta = row_of(op.delta, task, head);
  for (std::int64_t query = 0; query < task.segment->q_length; ++query) {
    const auto* a = dout.rows + query * dout.stride;
    const auto* b = o.rows + query * o.stride;
    delta[query] =
        lane_sum(op.q.shape[3], [a, b](std::int64_t c) { return Io::load(a[c]) * Io::load(b[c]); });
  }
}

/// The block of queries that meets the present block of keys.
struct QueryBlock {
  std::int64_t first_query;
  std::int64_t num_queries;
  std::int64_t first_key;
  std::int64_t num_keys;
};

/// p = exp(t - lse) and dS = p·(dP - delta) of one row, both rounded for the products that follow.
template <class Io, bool kNaturalExp>
void row_gradients(float* p, float* ds, std::int64_t cols, float factor, float lse, float delta) {
  // A row without a finite score has lse -inf; +inf makes its probabilities 0 instead of NaN.
  const float shift = lse == -INFINITY ? INFINITY : lse * (kNaturalExp ? 1.0f : kLog2E);
#pragma omp simd
  for (std::int64_t key = 0; key < cols; ++key)
    p[key] = power<kNaturalExp>(p[key] * factor - shift);
#pragma omp simd
  for (std::int64_t key = 0; key < cols; ++key) {
    ds[key] = Io::load(Io::store(p[key] * (ds[key] - delta)));
    p[key] = Io::load(Io::store(p[key]));
  }
}

/// Turns the products in `probabilities` and `dscores` into p and dS; a hidden key gives 0.
template <class Io, bool kNaturalExp>
void probabilities_and_dscores(Scratch& s, const QueryBlock& block, const Visibility& visibility,
                               const float* lse, const float* delta, float factor) {
  const std::int64_t cols = round_up(block.num_keys, kTileCols);
  for (std::int64_t row = 0; row < block.num_queries; ++row) {
    const std::int64_t query = block.first_query + row;
    const KeySpan span = visibility.keys_of(query);
    const auto first = std::clamp<std::int64_t>(span.first - block.first_key, 0, block.num_keys);
    const auto end = std::clamp<std::int64_t>(span.end - block.first_key, first, block.num_keys);
    float* p = s.probabilities.data() + row * kKeyBlock;
    float* ds = s.dscores.data() + row * kKeyBlock;
    row_gradients<Io, kNaturalExp>(p, ds, cols, factor, lse[query], delta[query]);
    for (float* values : {p, ds}) {
      std::fill(values, values + first, 0.0f);
      std::fill(values + end, values + cols, 0.0f);
    }
  }
}

/// Adds one block of queries of one head to dkeys, dvalues and dqueries.
template <class Io, bool kNaturalExp>
void backward_block(Scratch& s, const Operands& op, const Task& task, std::int64_t group_head,
                    const QueryBlock& block, const Visibility& visibility) {
  const std::int64_t d = op.q.shape[3];
  const std::int64_t head = task.key_head * task.group + group_head;
  const std::int64_t begin = task.segment->q_begin;
  HeadRows<Io>(op.q.data, op.q.strides, begin, task.batch, head)
      .load(block.first_query, block.num_queries, d, s.queries.data(), s.width);
  HeadRows<Io>(op.dout.data, op.dout.strides, begin, task.batch, head)
      .load(block.first_query, block.num_queries, d, s.dout.data(), s.width);
  const std::int64_t cols = round_up(block.num_keys, kTileCols);
  multiply_blocks({block.num_queries, cols, d, s.queries.data(), s.width, 1, s.key_columns.data(),
                   kKeyBlock, s.probabilities.data(), kKeyBlock, false});
  multiply_blocks({block.num_queries, cols, d, s.dout.data(), s.width, 1, s.value_columns.data(),
                   kKeyBlock, s.dscores.data(), kKeyBlock, false});
  const float factor = kNaturalExp ? op.options.scale : op.options.scale * kLog2E;
  probabilities_and_dscores<Io, kNaturalExp>(s, block, visibility, row_of(op.lse, task, head),
                                             row_of(op.delta, task, head), factor);
  multiply_blocks({block.num_keys, s.width, block.num_queries, s.probabilities.data(), 1, kKeyBlock,
                   s.dout.data(), s.width, s.dvalues.data(), s.width, true});
  multiply_blocks({block.num_keys, s.width, block.num_queries, s.dscores.data(), 1, kKeyBlock,
                   s.queries.data(), s.width, s.dkeys.data(), s.width, true});
  float* dqueries =
      s.dqueries.data() + (group_head * task.padded_queries + block.first_query) * s.width;
  multiply_blocks({block.num_queries, s.width, block.num_keys, s.dscores.data(), kKeyBlock, 1,
                   s.keys.data(), s.width, dqueries, s.width, true});
}

/// First query of the segment that sees key `key` or a later one, or q_length: spans never move
/// back.
std::int64_t first_query_of(const Visibility& visibility, const Segment& segment,
                            std::int64_t key) {
  std::int64_t low = 0;
  std::int64_t high = segment.q_length;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (visibility.keys_of(middle).end > key) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

template <class Io>
void load_key_block(Scratch& s, const Operands& op, const Task& task, std::int64_t first,
                    std::int64_t count) {
  const std::int64_t d = op.q.shape[3];
  const std::int64_t begin = task.segment->k_begin;
  HeadRows<Io>(op.k.data, op.k.strides, begin, task.batch, task.key_head)
      .load(first, count, d, s.keys.data(), s.width);
  HeadRows<Io>(op.v.data, op.v.strides, begin, task.batch, task.key_head)
      .load(first, count, d, s.values.data(), s.width);
  transpose_block(s.keys.data(), count, s.width, d, s.key_columns.data(), kKeyBlock);
  transpose_block(s.values.data(), count, s.width, d, s.value_columns.data(), kKeyBlock);
  std::fill(s.dkeys.begin(), s.dkeys.end(), 0.0f);
  std::fill(s.dvalues.begin(), s.dvalues.end(), 0.0f);
}

/// One block of keys against all queries that see it: heads ascending, then queries ascending.
template <class Io, bool kNaturalExp>
void backward_key_block(Scratch& s, const Operands& op, const Task& task,
                        const Visibility& visibility, std::int64_t first_key) {
  const Segment& segment = *task.segment;
  const std::int64_t num_keys = std::min(kKeyBlock, segment.k_length - first_key);
  load_key_block<Io>(s, op, task, first_key, num_keys);
  const std::int64_t begin = first_query_of(visibility, segment, first_key);
  for (std::int64_t group_head = 0; group_head < task.group; ++group_head) {
    for (std::int64_t first = begin; first < segment.q_length; first += kQueryBlock) {
      if (visibility.keys_of(first).first >= first_key + num_keys) break;
      const std::int64_t count = std::min(kQueryBlock, segment.q_length - first);
      backward_block<Io, kNaturalExp>(s, op, task, group_head, {first, count, first_key, num_keys},
                                      visibility);
    }
  }
  for (std::int64_t key = 0; key < num_keys; ++key) {
    const std::int64_t row = segment.k_begin + first_key + key;
    store_head_row<Io>(s.dkeys.data() + key * s.width, op.options.scale, op.dk, row, task.batch,
                       task.key_head);
    store_head_row<Io>(s.dvalues.data() + key * s.width, 1.0f, op.dv, row, task.batch,
                       task.key_head);
  }
}

template <class Io, bool kNaturalExp>
void backward_head(Scratch& s, const Operands& op, const Task& task) {
  const Segment& segment = *task.segment;
  for (std::int64_t i = 0; i < task.group; ++i) {
    compute_delta<Io>(op, task, task.key_head * task.group + i);
  }
  s.dqueries.assign(static_cast<std::size_t>(task.group * task.padded_queries * s.width), 0.0f);
  const Visibility visibility(segment, op.options);
  for (std::int64_t first = 0; first < segment.k_length; first += kKeyBlock) {
    backward_key_block<Io, kNaturalExp>(s, op, task, visibility, first);
  }
  for (std::int64_t i = 0; i < task.group; ++i) {
    const float* rows = s.dqueries.data() + i * task.padded_queries * s.width;
    for (std::int64_t query = 0; query < segment.q_length; ++query) {
      store_head_row<Io>(rows + query * s.width, op.options.scale, op.dq, segment.q_begin + query,
                         task.batch, task.key_head * task.group + i);
    }
  }
}

}  // namespace

void flash_attention_backward(const Stream& /*stream*/, ConstView dout, ConstView q, ConstView k,
                              ConstView v, ConstView o, ConstView lse, View delta, View dq, View dk,
                              View dv, const ops::FlashAttentionOptions& options) {
  const Operands op{dout, q, k, v, o, lse, delta, dq, dk, dv, options};
  const std::vector<Segment> segments = segments_of(q, k, options);
  if (!options.cu_seqlens_q.empty()) {
    zero_unused_rows(dq, options.cu_seqlens_q.back());
    zero_unused_rows(dk, options.cu_seqlens_k.back());
    zero_unused_rows(dv, options.cu_seqlens_k.back());
  }
  const auto num_segments = static_cast<std::int64_t>(segments.size());
  const std::int64_t key_heads = k.shape[2];
  const std::int64_t num_tasks = num_segments * q.shape[1] * key_heads;
  with_arithmetic(q.dtype, options.natural_exp, [&](auto io, auto natural) {
#pragma omp parallel if (num_tasks > 1 && score_products(q, k) > kParallelProducts)
    {
      Scratch scratch(q.shape[3]);
#pragma omp for schedule(dynamic)
      for (std::int64_t index = 0; index < num_tasks; ++index) {
        const Segment& segment = segments[static_cast<std::size_t>(index % num_segments)];
        // The tiles of a head's last block of queries run over its end by less than one tile.
        const Task task{&segment, index / num_segments / key_heads,
                        index / num_segments % key_heads, q.shape[2] / key_heads,
                        segment.q_length + kTileRows};
        backward_head<decltype(io), decltype(natural)::value>(scratch, op, task);
      }
    }
  });
}

}  // namespace kitchen::reference
