#include "kitchen/reference/flash_attention.h"
#include "kitchen/reference/flash_attention_blocks.h"

#include <cmath>

namespace kitchen::reference {

namespace {

// Half a key block: half of a causal 64 x 64 corner is then never computed.
constexpr std::int64_t kQueryBlock = 32;

/// Scores are held transposed, [keys, queries]: then the running maximum and sum of all queries of
/// a block are vectors, and no loop needs a horizontal reduction.
struct Scratch {
  explicit Scratch(std::int64_t d)
      : width(round_up(d, kTileCols)),
        query_columns(static_cast<std::size_t>(d * kQueryBlock)),
        query_rows(static_cast<std::size_t>(kQueryBlock * width)),
        keys(static_cast<std::size_t>(kKeyBlock * width)),
        values(static_cast<std::size_t>(kKeyBlock * width)),
        scores(static_cast<std::size_t>(kKeyBlock * kQueryBlock)),
        output(static_cast<std::size_t>(kQueryBlock * width)) {}

  std::int64_t width;                // d rounded up to whole tiles
  std::vector<float> query_columns;  // (d, kQueryBlock)
  std::vector<float> query_rows;     // (kQueryBlock, width)
  std::vector<float> keys;           // (kKeyBlock, width)
  std::vector<float> values;         // (kKeyBlock, width)
  std::vector<float> scores;         // (kKeyBlock, kQueryBlock), later probabilities
  std::vector<float> output;         // (kQueryBlock, width), not yet divided by the sum
  float maximum[kQueryBlock];
  float shift[kQueryBlock];  // maximum, or 0 where no key has been seen
  float sum[kQueryBlock];
  float correction[kQueryBlock];
};

struct Operands {
  ops::AttentionRows q, k, v;
  View o, lse;
  const ops::FlashAttentionOptions& options;
};

/// One block of queries of one head.
struct Task {
  const Segment* segment;
  std::int64_t batch;
  std::int64_t head;
  std::int64_t key_head;
  std::int64_t first_query;
  std::int64_t num_queries;
  std::int64_t lanes;  // num_queries rounded up to whole tiles
};

/// Hides with -inf what is not visible. Spans never move back, so the queries that see a key are
/// neighbours.
void hide_invisible(Scratch& s, const Task& task, const Visibility& visibility,
                    std::int64_t first_key, std::int64_t num_keys) {
  std::int64_t first_lane = 0;
  std::int64_t end_lane = 0;
  for (std::int64_t key = first_key; key < first_key + num_keys; ++key) {
    while (first_lane < task.num_queries &&
           visibility.keys_of(task.first_query + first_lane).end <= key) {
      ++first_lane;
    }
    while (end_lane < task.num_queries &&
           visibility.keys_of(task.first_query + end_lane).first <= key) {
      ++end_lane;
    }
    float* row = s.scores.data() + (key - first_key) * kQueryBlock;
    std::fill(row, row + first_lane, -INFINITY);
    std::fill(row + std::max(first_lane, end_lane), row + task.lanes, -INFINITY);
  }
}

/// Makes t = score·factor of the products and takes the running maximum.
void scale_and_mask(Scratch& s, const Task& task, const Visibility& visibility,
                    std::int64_t first_key, std::int64_t num_keys, float factor) {
  std::copy(s.maximum, s.maximum + task.lanes, s.shift);
  for (std::int64_t key = 0; key < num_keys; ++key) {
    float* row = s.scores.data() + key * kQueryBlock;
#pragma omp simd
    for (std::int64_t lane = 0; lane < task.lanes; ++lane) row[lane] *= factor;
  }
  const KeySpan of_first = visibility.keys_of(task.first_query);
  const KeySpan of_last = visibility.keys_of(task.first_query + task.num_queries - 1);
  if (of_first.end < first_key + num_keys || of_last.first > first_key) {
    hide_invisible(s, task, visibility, first_key, num_keys);
  }
  for (std::int64_t key = 0; key < num_keys; ++key) {
    const float* row = s.scores.data() + key * kQueryBlock;
#pragma omp simd
    for (std::int64_t lane = 0; lane < task.lanes; ++lane) {
      s.maximum[lane] = row[lane] > s.maximum[lane] ? row[lane] : s.maximum[lane];
    }
  }
}

/// p = exp(t - maximum), rounded for the product with V; the sum keeps fp32.
template <class Numerics>
void exponentiate(Scratch& s, std::int64_t lanes, std::int64_t num_keys, float p_scale) {
  constexpr bool kNaturalExp = Numerics::kNaturalExp;
  float block_sum[kQueryBlock] = {};
#pragma omp simd
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const float former = s.shift[lane];
    // Without a key so far both are -inf, whose difference is NaN: shift by 0 instead.
    s.shift[lane] = s.maximum[lane] == -INFINITY ? 0.0f : s.maximum[lane];
    s.correction[lane] = power<kNaturalExp>(former - s.shift[lane]);
  }
  for (std::int64_t key = 0; key < num_keys; ++key) {
    float* row = s.scores.data() + key * kQueryBlock;
#pragma omp simd
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const float p = power<kNaturalExp>(row[lane] - s.shift[lane]);
      block_sum[lane] += p;
      row[lane] = Numerics::round_p(p, p_scale);
    }
  }
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    s.sum[lane] = s.sum[lane] * s.correction[lane] + block_sum[lane];
  }
}

void rescale_output(Scratch& s, std::int64_t num_queries) {
  for (std::int64_t query = 0; query < num_queries; ++query) {
    const float correction = s.correction[query];
    if (correction == 1.0f) continue;
    float* row = s.output.data() + query * s.width;
    for (std::int64_t c = 0; c < s.width; ++c) row[c] *= correction;
  }
}

template <class Numerics>
void store_results(Scratch& s, const Task& task, const Operands& op, float value_factor) {
  const View& lse = op.lse;
  auto* lse_row = static_cast<float*>(lse.data) + task.batch * lse.strides[0] +
                  task.head * lse.strides[1] + task.segment->q_begin + task.first_query;
  for (std::int64_t query = 0; query < task.num_queries; ++query) {
    const float sum = s.sum[query];
    const float maximum = Numerics::kNaturalExp ? s.maximum[query] : s.maximum[query] * kLn2;
    float* row = s.output.data() + query * s.width;
    if (sum == 0.0f) {
      // Not the accumulator: it may hold 0 · NaN of keys of this block that the query does not see.
      std::fill(row, row + s.width, 0.0f);
      lse_row[query] = -INFINITY;
    } else {
      for (std::int64_t c = 0; c < s.width; ++c) row[c] /= sum;
      lse_row[query] = maximum + log_exact(sum);
    }
    store_head_row<typename Numerics::Output>(row, value_factor, op.o,
                                              task.segment->q_begin + task.first_query + query,
                                              task.batch, task.head);
  }
}

template <class Numerics>
void forward_block(Scratch& s, const Task& task, const Operands& op) {
  using Rows = HeadRows<typename Numerics::Operand>;
  const Segment& segment = *task.segment;
  const ops::FlashAttentionOptions& options = op.options;
  const std::int64_t d = op.q.rows.shape[3];
  const Rows queries(op.q.rows, segment.q_begin, task.batch, task.head);
  const Rows keys(op.k.rows, segment.k_begin, task.batch, task.key_head);
  const Rows values(op.v.rows, segment.k_begin, task.batch, task.key_head);
  queries.load(task.first_query, task.num_queries, d, s.query_rows.data(), s.width);
  transpose_block(s.query_rows.data(), task.num_queries, s.width, d, s.query_columns.data(),
                  kQueryBlock);
  std::fill(s.output.begin(), s.output.end(), 0.0f);
  std::fill(s.maximum, s.maximum + kQueryBlock, -INFINITY);
  std::fill(s.sum, s.sum + kQueryBlock, 0.0f);
  const float factor = score_factor<Numerics::kNaturalExp>(
      op.q.factor(task.batch, task.head), op.k.factor(task.batch, task.key_head), options.scale);
  const Visibility visibility(segment, options);
  const std::int64_t last = task.first_query + task.num_queries - 1;
  const std::int64_t end = visibility.keys_of(last).end;
  for (std::int64_t first = visibility.keys_of(task.first_query).first; first < end;
       first += kKeyBlock) {
    const std::int64_t count = std::min(kKeyBlock, end - first);
    keys.load(first, count, d, s.keys.data(), s.width);
    values.load(first, count, d, s.values.data(), s.width);
    multiply_blocks({count, task.lanes, d, s.keys.data(), s.width, 1, s.query_columns.data(),
                     kQueryBlock, s.scores.data(), kQueryBlock, false});
    scale_and_mask(s, task, visibility, first, count, factor);
    exponentiate<Numerics>(s, task.lanes, count, options.p_scale);
    rescale_output(s, task.num_queries);
    multiply_blocks({task.num_queries, s.width, count, s.scores.data(), 1, kQueryBlock,
                     s.values.data(), s.width, s.output.data(), s.width, true});
  }
  store_results<Numerics>(
      s, task, op, op.v.factor(task.batch, task.key_head) * p_factor<Numerics>(options.p_scale));
}

/// Blocks of queries of all segments, for one head.
std::vector<Task> query_blocks(const std::vector<Segment>& segments) {
  std::vector<Task> tasks;
  for (const Segment& segment : segments) {
    for (std::int64_t first = 0; first < segment.q_length; first += kQueryBlock) {
      const std::int64_t count = std::min(kQueryBlock, segment.q_length - first);
      tasks.push_back({&segment, 0, 0, 0, first, count, round_up(count, kTileCols)});
    }
  }
  return tasks;
}

template <class Numerics>
void forward_all(const Operands& op) {
  const ConstView& q = op.q.rows;
  const ConstView& k = op.k.rows;
  const std::vector<Segment> segments = segments_of(q, k, op.options);
  const std::vector<Task> blocks = query_blocks(segments);
  if (!op.options.cu_seqlens_q.empty()) {
    zero_unused_rows(op.o, op.options.cu_seqlens_q.back());
    fill_unused_lse(op.lse, op.options.cu_seqlens_q.back());
  }
  const auto num_blocks = static_cast<std::int64_t>(blocks.size());
  const std::int64_t heads = q.shape[2];
  const std::int64_t group = heads / k.shape[2];
  const std::int64_t num_tasks = num_blocks * q.shape[1] * heads;
#pragma omp parallel if (num_tasks > 1 && score_products(q, k) > kParallelProducts)
  {
    Scratch scratch(q.shape[3]);
#pragma omp for schedule(dynamic)
    for (std::int64_t index = 0; index < num_tasks; ++index) {
      Task task = blocks[static_cast<std::size_t>(index % num_blocks)];
      task.head = index / num_blocks % heads;
      task.batch = index / num_blocks / heads;
      task.key_head = task.head / group;
      forward_block<Numerics>(scratch, task, op);
    }
  }
}

}  // namespace

void flash_attention_forward(const Stream& /*stream*/, ConstView q, ConstView k, ConstView v,
                             View o, View lse, const ops::FlashAttentionOptions& options) {
  const Operands op{{q, {}}, {k, {}}, {v, {}}, o, lse, options};
  with_numerics<PlainNumerics>(o.dtype, options.natural_exp,
                               [&](auto numerics) { forward_all<decltype(numerics)>(op); });
}

void flash_attention_fp8_forward(const Stream& /*stream*/, const ops::AttentionRows& q,
                                 const ops::AttentionRows& k, const ops::AttentionRows& v, View o,
                                 View lse, const ops::FlashAttentionOptions& options) {
  const Operands op{q, k, v, o, lse, options};
  with_numerics<Fp8Numerics>(o.dtype, options.natural_exp,
                             [&](auto numerics) { forward_all<decltype(numerics)>(op); });
}

void register_flash_attention_kernels(Backend& backend) {
  backend.add<ops::FlashAttentionForwardKernel>("blocked", &flash_attention_forward);
  backend.add<ops::FlashAttentionBackwardKernel>("blocked", &flash_attention_backward);
  backend.add<ops::FlashAttentionFp8ForwardKernel>("blocked", &flash_attention_fp8_forward);
  backend.add<ops::FlashAttentionFp8BackwardKernel>("blocked", &flash_attention_fp8_backward);
  backend.add<ops::FlashAttentionFp8ForwardKernel>("exact", &flash_attention_fp8_forward_exact);
  backend.add<ops::FlashAttentionFp8BackwardKernel>("exact", &flash_attention_fp8_backward_exact);
}

}  // namespace kitchen::reference
