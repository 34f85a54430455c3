#include "kitchen/formats/scale_rule.h"
#include "kitchen/reference/flash_attention.h"
#include "kitchen/reference/flash_attention_blocks.h"
#include "kitchen/reference/lane_sum.h"
#include "kitchen/reference/quantize.h"

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
        head_dkeys(block(kKeyBlock, width)),
        head_dvalues(block(kKeyBlock, width)),
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
  std::vector<float> head_dkeys;     // (kKeyBlock, width), of one head, its factor left out
  std::vector<float> head_dvalues;   // (kKeyBlock, width)
  std::vector<float> dkeys;          // (kKeyBlock, width), of the group
  std::vector<float> dvalues;        // (kKeyBlock, width)
  std::vector<float> dqueries;       // (group, padded_queries, width): sums over key blocks
};

struct Operands {
  ConstView dout;
  ops::AttentionRows dout_rows, q, k, v;
  ConstView o, lse;
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
  const HeadRows<Io> dout(op.dout, task.segment->q_begin, task.batch, head);
  const HeadRows<Io> o(op.o, task.segment->q_begin, task.batch, head);
  float* delta = row_of(op.delta, task, head);
  for (std::int64_t query = 0; query < task.segment->q_length; ++query) {
    const auto* a = dout.rows + query * dout.stride;
    const auto* b = o.rows + query * o.stride;
    delta[query] =
        lane_sum(op.o.shape[3], [a, b](std::int64_t c) { return Io::load(a[c]) * Io::load(b[c]); });
  }
}

/// The block of queries that meets the present block of keys.
struct QueryBlock {
  std::int64_t first_query;
  std::int64_t num_queries;
  std::int64_t first_key;
  std::int64_t num_keys;
};

/// fp32 factors of one query head: the scales of its operands and of dS, all 1 without codes.
struct HeadFactors {
  float score;     ///< of q·k, to the exponent of p
  float dp;        ///< of dout·v
  float dq;        ///< of dS·k
  float dk;        ///< of dS·q
  float dv;        ///< of p·dout
  float ds_scale;  ///< of dS before its cast
};

template <class Numerics>
HeadFactors head_factors(const Operands& op, const Task& task, std::int64_t head, float ds_scale) {
  const float q = op.q.factor(task.batch, head);
  const float k = op.k.factor(task.batch, task.key_head);
  const float dout = op.dout_rows.factor(task.batch, head);
  const float ds = 1.0f / ds_scale * op.options.scale;
  return {score_factor<Numerics::kNaturalExp>(q, k, op.options.scale),
          dout * op.v.factor(task.batch, task.key_head),
          k * ds,
          q * ds,
          dout * p_factor<Numerics>(op.options.p_scale),
          ds_scale};
}

/// Keys [first, end) of a block, counted from its first.
KeySpan visible_in(const QueryBlock& block, const Visibility& visibility, std::int64_t row) {
  const KeySpan span = visibility.keys_of(block.first_query + row);
  const auto first = std::clamp<std::int64_t>(span.first - block.first_key, 0, block.num_keys);
  return {first, std::clamp<std::int64_t>(span.end - block.first_key, first, block.num_keys)};
}

/// Turns the products of one row into p = exp(t - lse) and dS = p·(dP - delta), not rounded.
template <bool kNaturalExp>
void row_gradients(float* p, float* ds, std::int64_t cols, const HeadFactors& factors, float lse,
                   float delta) {
  // A row without a finite score has lse -inf; +inf makes its probabilities 0 instead of NaN.
  const float shift = lse == -INFINITY ? INFINITY : lse * (kNaturalExp ? 1.0f : kLog2E);
  const float score_factor = factors.score;
  const float dp_factor = factors.dp;
#pragma omp simd
  for (std::int64_t key = 0; key < cols; ++key) {
    p[key] = power<kNaturalExp>(p[key] * score_factor - shift);
    ds[key] = p[key] * (ds[key] * dp_factor - delta);
  }
}

/// p and dS of one block of queries of one head in the scratch, from its operands.
template <class Numerics>
void probabilities_and_dscores(Scratch& s, const Operands& op, const Task& task, std::int64_t head,
                               const QueryBlock& block, const HeadFactors& factors) {
  const std::int64_t d = op.q.rows.shape[3];
  const std::int64_t begin = task.segment->q_begin;
  HeadRows<typename Numerics::Operand>(op.q.rows, begin, task.batch, head)
      .load(block.first_query, block.num_queries, d, s.queries.data(), s.width);
  HeadRows<typename Numerics::OutGradient>(op.dout_rows.rows, begin, task.batch, head)
      .load(block.first_query, block.num_queries, d, s.dout.data(), s.width);
  const std::int64_t cols = round_up(block.num_keys, kTileCols);
  multiply_blocks({block.num_queries, cols, d, s.queries.data(), s.width, 1, s.key_columns.data(),
                   kKeyBlock, s.probabilities.data(), kKeyBlock, false});
  multiply_blocks({block.num_queries, cols, d, s.dout.data(), s.width, 1, s.value_columns.data(),
                   kKeyBlock, s.dscores.data(), kKeyBlock, false});
  const float* lse = row_of(op.lse, task, head) + block.first_query;
  const float* delta = row_of(op.delta, task, head) + block.first_query;
  for (std::int64_t row = 0; row < block.num_queries; ++row) {
    row_gradients<Numerics::kNaturalExp>(s.probabilities.data() + row * kKeyBlock,
                                         s.dscores.data() + row * kKeyBlock, cols, factors,
                                         lse[row], delta[row]);
  }
}

/// Rounds p and dS of a block for the products that follow; a hidden key gives 0.
template <class Numerics>
void round_and_mask(Scratch& s, const QueryBlock& block, const Visibility& visibility,
                    float p_scale, float ds_scale) {
  const std::int64_t cols = round_up(block.num_keys, kTileCols);
  for (std::int64_t row = 0; row < block.num_queries; ++row) {
    const KeySpan span = visible_in(block, visibility, row);
    float* p = s.probabilities.data() + row * kKeyBlock;
    float* ds = s.dscores.data() + row * kKeyBlock;
#pragma omp simd
    for (std::int64_t key = 0; key < cols; ++key) {
      p[key] = Numerics::round_p(p[key], p_scale);
      ds[key] = Numerics::round_ds(ds[key], ds_scale);
    }
    for (float* values : {p, ds}) {
      std::fill(values, values + span.first, 0.0f);
      std::fill(values + span.end, values + cols, 0.0f);
    }
  }
}

/// Adds one block of queries of one head to head_dkeys, head_dvalues and dqueries.
template <class Numerics>
void backward_block(Scratch& s, const Operands& op, const Task& task, std::int64_t group_head,
                    const QueryBlock& block, const Visibility& visibility,
                    const HeadFactors& factors) {
  probabilities_and_dscores<Numerics>(s, op, task, task.key_head * task.group + group_head, block,
                                      factors);
  round_and_mask<Numerics>(s, block, visibility, op.options.p_scale, factors.ds_scale);
  multiply_blocks({block.num_keys, s.width, block.num_queries, s.probabilities.data(), 1, kKeyBlock,
                   s.dout.data(), s.width, s.head_dvalues.data(), s.width, true});
  multiply_blocks({block.num_keys, s.width, block.num_queries, s.dscores.data(), 1, kKeyBlock,
                   s.queries.data(), s.width, s.head_dkeys.data(), s.width, true});
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

/// Calls visit(block) for the blocks of queries that see one of the keys [first_key, first_key +
/// num_keys), ascending.
template <class Visit>
void for_each_query_block(const Segment& segment, const Visibility& visibility,
                          std::int64_t first_key, std::int64_t num_keys, Visit&& visit) {
  for (std::int64_t first = first_query_of(visibility, segment, first_key);
       first < segment.q_length; first += kQueryBlock) {
    if (visibility.keys_of(first).first >= first_key + num_keys) break;
    visit(QueryBlock{first, std::min(kQueryBlock, segment.q_length - first), first_key, num_keys});
  }
}

template <class Numerics>
void load_key_block(Scratch& s, const Operands& op, const Task& task, std::int64_t first,
                    std::int64_t count) {
  using Rows = HeadRows<typename Numerics::Operand>;
  const std::int64_t d = op.q.rows.shape[3];
  const std::int64_t begin = task.segment->k_begin;
  Rows(op.k.rows, begin, task.batch, task.key_head).load(first, count, d, s.keys.data(), s.width);
  Rows(op.v.rows, begin, task.batch, task.key_head).load(first, count, d, s.values.data(), s.width);
  transpose_block(s.keys.data(), count, s.width, d, s.key_columns.data(), kKeyBlock);
  transpose_block(s.values.data(), count, s.width, d, s.value_columns.data(), kKeyBlock);
}

void add_scaled(std::vector<float>& sum, const std::vector<float>& values, float factor) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * values[i];
}

/// One block of keys against all queries that see it: heads ascending, then queries ascending.
template <class Numerics>
void backward_key_block(Scratch& s, const Operands& op, const Task& task,
                        const Visibility& visibility, const std::vector<HeadFactors>& factors,
                        std::int64_t first_key) {
  const Segment& segment = *task.segment;
  const std::int64_t num_keys = std::min(kKeyBlock, segment.k_length - first_key);
  load_key_block<Numerics>(s, op, task, first_key, num_keys);
  std::fill(s.dkeys.begin(), s.dkeys.end(), 0.0f);
  std::fill(s.dvalues.begin(), s.dvalues.end(), 0.0f);
  for (std::int64_t group_head = 0; group_head < task.group; ++group_head) {
    const HeadFactors& of_head = factors[static_cast<std::size_t>(group_head)];
    std::fill(s.head_dkeys.begin(), s.head_dkeys.end(), 0.0f);
    std::fill(s.head_dvalues.begin(), s.head_dvalues.end(), 0.0f);
    for_each_query_block(segment, visibility, first_key, num_keys, [&](const QueryBlock& block) {
      backward_block<Numerics>(s, op, task, group_head, block, visibility, of_head);
    });
    add_scaled(s.dkeys, s.head_dkeys, of_head.dk);
    add_scaled(s.dvalues, s.head_dvalues, of_head.dv);
  }
  for (std::int64_t key = 0; key < num_keys; ++key) {
    const std::int64_t row = segment.k_begin + first_key + key;
    store_head_row<typename Numerics::Output>(s.dkeys.data() + key * s.width, 1.0f, op.dk, row,
                                              task.batch, task.key_head);
    store_head_row<typename Numerics::Output>(s.dvalues.data() + key * s.width, 1.0f, op.dv, row,
                                              task.batch, task.key_head);
  }
}

/// The scale of one query head's dS, from the exact amax over all that it sees: a pass of its own.
template <class Numerics>
float dscore_scale(Scratch& s, const Operands& op, const Task& task, const Visibility& visibility,
                   std::int64_t head) {
  using Io = typename Numerics::Output;
  const HeadFactors factors = head_factors<Numerics>(op, task, head, 1.0f);
  float amax = 0.0f;
  for (std::int64_t first = 0; first < task.segment->k_length; first += kKeyBlock) {
    const std::int64_t num_keys = std::min(kKeyBlock, task.segment->k_length - first);
    load_key_block<Numerics>(s, op, task, first, num_keys);
    for_each_query_block(*task.segment, visibility, first, num_keys, [&](const QueryBlock& block) {
      probabilities_and_dscores<Numerics>(s, op, task, head, block, factors);
      for (std::int64_t row = 0; row < block.num_queries; ++row) {
        const KeySpan span = visible_in(block, visibility, row);
        const float* ds = s.dscores.data() + row * kKeyBlock;
#pragma omp simd reduction(max : amax)
        for (std::int64_t key = span.first; key < span.end; ++key) {
          // False for a NaN, which the amax skips.
          amax = std::fabs(ds[key]) > amax ? std::fabs(ds[key]) : amax;
        }
      }
    });
  }
  // Rounding keeps the order, so the amax of rounded values is the rounded amax.
  return formats::compute_scale(Io::load(Io::store(amax)), formats::max_value(formats::kE5M2), 0.0f,
                                /*pow2=*/false, largest_of_dtype(op.o.dtype));
}

template <class Numerics>
void backward_head(Scratch& s, const Operands& op, const Task& task) {
  const Segment& segment = *task.segment;
  const Visibility visibility(segment, op.options);
  std::vector<HeadFactors> factors;
  for (std::int64_t i = 0; i < task.group; ++i) {
    const std::int64_t head = task.key_head * task.group + i;
    compute_delta<typename Numerics::Output>(op, task, head);
    float ds_scale = 1.0f;
    if constexpr (Numerics::kQuantized) {
      ds_scale = dscore_scale<Numerics>(s, op, task, visibility, head);
    }
    factors.push_back(head_factors<Numerics>(op, task, head, ds_scale));
  }
  s.dqueries.assign(static_cast<std::size_t>(task.group * task.padded_queries * s.width), 0.0f);
  for (std::int64_t first = 0; first < segment.k_length; first += kKeyBlock) {
    backward_key_block<Numerics>(s, op, task, visibility, factors, first);
  }
  for (std::int64_t i = 0; i < task.group; ++i) {
    const float* rows = s.dqueries.data() + i * task.padded_queries * s.width;
    for (std::int64_t query = 0; query < segment.q_length; ++query) {
      store_head_row<typename Numerics::Output>(
          rows + query * s.width, factors[static_cast<std::size_t>(i)].dq, op.dq,
          segment.q_begin + query, task.batch, task.key_head * task.group + i);
    }
  }
}

template <class Numerics>
void backward_all(const Operands& op) {
  const ConstView& q = op.q.rows;
  const ConstView& k = op.k.rows;
  const std::vector<Segment> segments = segments_of(q, k, op.options);
  if (!op.options.cu_seqlens_q.empty()) {
    zero_unused_rows(op.dq, op.options.cu_seqlens_q.back());
    zero_unused_rows(op.dk, op.options.cu_seqlens_k.back());
    zero_unused_rows(op.dv, op.options.cu_seqlens_k.back());
  }
  const auto num_segments = static_cast<std::int64_t>(segments.size());
  const std::int64_t key_heads = k.shape[2];
  const std::int64_t num_tasks = num_segments * q.shape[1] * key_heads;
#pragma omp parallel if (num_tasks > 1 && score_products(q, k) > kParallelProducts)
  {
    Scratch scratch(q.shape[3]);
#pragma omp for schedule(dynamic)
    for (std::int64_t index = 0; index < num_tasks; ++index) {
      const Segment& segment = segments[static_cast<std::size_t>(index % num_segments)];
      // The tiles of a head's last block of queries run over its end by less than one tile.
      const Task task{&segment, index / num_segments / key_heads, index / num_segments % key_heads,
                      q.shape[2] / key_heads, segment.q_length + kTileRows};
      backward_head<Numerics>(scratch, op, task);
    }
  }
}

}  // namespace

void flash_attention_backward(const Stream& /*stream*/, ConstView dout, ConstView q, ConstView k,
                              ConstView v, ConstView o, ConstView lse, View delta, View dq, View dk,
                              View dv, const ops::FlashAttentionOptions& options) {
  const Operands op{dout, {dout, {}}, {q, {}}, {k, {}}, {v, {}}, o,
                    lse,  delta,      dq,      dk,      dv,      options};
  with_numerics<PlainNumerics>(o.dtype, options.natural_exp,
                               [&](auto numerics) { backward_all<decltype(numerics)>(op); });
}

void flash_attention_fp8_backward(const Stream& /*stream*/, ConstView dout,
                                  const ops::AttentionRows& dout_codes, const ops::AttentionRows& q,
                                  const ops::AttentionRows& k, const ops::AttentionRows& v,
                                  ConstView o, ConstView lse, View delta, View dq, View dk, View dv,
                                  const ops::FlashAttentionOptions& options) {
  const Operands op{dout, dout_codes, q, k, v, o, lse, delta, dq, dk, dv, options};
  with_numerics<Fp8Numerics>(o.dtype, options.natural_exp,
                             [&](auto numerics) { backward_all<decltype(numerics)>(op); });
}

}  // namespace kitchen::reference
