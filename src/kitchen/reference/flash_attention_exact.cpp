#include "kitchen/formats/scale_rule.h"
#include "kitchen/reference/flash_attention.h"
#include "kitchen/reference/flash_attention_blocks.h"
#include "kitchen/reference/quantize.h"

#include <cmath>
#include <functional>

namespace kitchen::reference {

namespace {

/// One head of one sequence, its operands dequantized to fp64.
struct ExactHead {
  Segment segment;
  std::int64_t batch;
  std::int64_t head;
  std::int64_t key_head;
  std::vector<double> q, k, v, dout;  // (length, d)
};

template <class Io>
std::vector<double> dequantized(const ops::AttentionRows& x, std::int64_t first, std::int64_t count,
                                std::int64_t batch, std::int64_t head) {
  const HeadRows<Io> rows(x.rows, first, batch, head);
  const double factor = x.factor(batch, head);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t c = 0; c < x.rows.shape[3]; ++c) {
      values.push_back(Io::load(rows.rows[i * rows.stride + c]) * factor);
    }
  }
  return values;
}

double dot(const std::vector<double>& a, std::int64_t i, const std::vector<double>& b,
           std::int64_t j, std::int64_t d) {
  double sum = 0.0;
  for (std::int64_t c = 0; c < d; ++c) {
    sum += a[static_cast<std::size_t>(i * d + c)] * b[static_cast<std::size_t>(j * d + c)];
  }
  return sum;
}

void add_row(std::vector<double>& sum, std::int64_t i, double factor,
             const std::vector<double>& rows, std::int64_t j, std::int64_t d) {
  for (std::int64_t c = 0; c < d; ++c) {
    sum[static_cast<std::size_t>(i * d + c)] += factor * rows[static_cast<std::size_t>(j * d + c)];
  }
}

template <class Io>
void store_rows(const std::vector<double>& values, const View& out, std::int64_t first,
                std::int64_t batch, std::int64_t head) {
  const std::int64_t d = out.shape[3];
  std::vector<float> row(static_cast<std::size_t>(d));
  for (std::int64_t i = 0; i * d < static_cast<std::int64_t>(values.size()); ++i) {
    for (std::int64_t c = 0; c < d; ++c) {
      row[static_cast<std::size_t>(c)] =
          static_cast<float>(values[static_cast<std::size_t>(i * d + c)]);
    }
    store_head_row<Io>(row.data(), 1.0f, out, first + i, batch, head);
  }
}

float& row_statistic(const View& view, const ExactHead& h, std::int64_t query) {
  return static_cast<float*>(
      view.data)[h.batch * view.strides[0] + h.head * view.strides[1] + h.segment.q_begin + query];
}

using Fp8 = Fp8Numerics<Float32Io, true>;

struct ForwardArguments {
  ops::AttentionRows q, k, v;
  View o, lse;
  const ops::FlashAttentionOptions& options;
};

/// Visits every head of every sequence with q, k and v loaded.
void for_each_head(const ops::AttentionRows& q, const ops::AttentionRows& k,
                   const ops::AttentionRows& v, const ops::FlashAttentionOptions& options,
                   const std::function<void(ExactHead&)>& visit) {
  for (const Segment& segment : segments_of(q.rows, k.rows, options)) {
    for (std::int64_t batch = 0; batch < q.rows.shape[1]; ++batch) {
      for (std::int64_t head = 0; head < q.rows.shape[2]; ++head) {
        const std::int64_t key_head = head / (q.rows.shape[2] / k.rows.shape[2]);
        ExactHead h{segment, batch, head, key_head, {}, {}, {}, {}};
        h.q = dequantized<E4m3Io>(q, segment.q_begin, segment.q_length, batch, head);
        h.k = dequantized<E4m3Io>(k, segment.k_begin, segment.k_length, batch, key_head);
        h.v = dequantized<E4m3Io>(v, segment.k_begin, segment.k_length, batch, key_head);
        visit(h);
      }
    }
  }
}

/// Output and log-sum-exp of one query.
template <class Io>
void forward_query(const ForwardArguments& a, const ExactHead& h, std::int64_t query) {
  const std::int64_t d = a.o.shape[3];
  const KeySpan span = Visibility(h.segment, a.options).keys_of(query);
  std::vector<double> scores;
  double maximum = -INFINITY;
  for (std::int64_t key = span.first; key < span.end; ++key) {
    scores.push_back(a.options.scale * dot(h.q, query, h.k, key, d));
    maximum = std::max(maximum, scores.back());
  }
  std::vector<double> out(static_cast<std::size_t>(d), 0.0);
  double sum = 0.0;
  for (std::int64_t key = span.first; key < span.end && maximum > -INFINITY; ++key) {
    const double p = std::exp(scores[static_cast<std::size_t>(key - span.first)] - maximum);
    sum += p;
    add_row(out, 0, Fp8::round_p(static_cast<float>(p), a.options.p_scale) / a.options.p_scale, h.v,
            key, d);
  }
  for (double& value : out) value = sum > 0.0 ? value / sum : 0.0;
  store_rows<Io>(out, a.o, h.segment.q_begin + query, h.batch, h.head);
  row_statistic(a.lse, h, query) =
      sum > 0.0 ? static_cast<float>(maximum + std::log(sum)) : -INFINITY;
}

/// p and dS of one query, dS rounded to the output's dtype.
struct QueryGradients {
  std::vector<double> p;
  std::vector<float> ds;
};

struct BackwardArguments {
  ConstView dout;
  ops::AttentionRows dout_codes, q, k, v;
  ConstView o, lse;
  View delta, dq, dk, dv;
  const ops::FlashAttentionOptions& options;
};

template <class Io>
QueryGradients query_gradients(const BackwardArguments& a, const ExactHead& h, std::int64_t query,
                               const KeySpan& span) {
  const std::int64_t d = a.o.shape[3];
  const HeadRows<Io> dout(a.dout, h.segment.q_begin + query, h.batch, h.head);
  const HeadRows<Io> o(a.o, h.segment.q_begin + query, h.batch, h.head);
  double delta = 0.0;
  for (std::int64_t c = 0; c < d; ++c) {
    delta += static_cast<double>(Io::load(dout.rows[c])) * Io::load(o.rows[c]);
  }
  row_statistic(a.delta, h, query) = static_cast<float>(delta);
  const auto* lse_rows = static_cast<const float*>(a.lse.data);
  const double lse =
      lse_rows[h.batch * a.lse.strides[0] + h.head * a.lse.strides[1] + h.segment.q_begin + query];
  QueryGradients g;
  for (std::int64_t key = span.first; key < span.end; ++key) {
    const double score = a.options.scale * dot(h.q, query, h.k, key, d);
    g.p.push_back(lse > -INFINITY ? std::exp(score - lse) : 0.0);
    const double ds = g.p.back() * (dot(h.dout, query, h.v, key, d) - delta);
    g.ds.push_back(Io::load(Io::store(static_cast<float>(ds))));
  }
  return g;
}

/// Adds one query head to dq and to its group's dk and dv.
template <class Io>
void backward_head(const BackwardArguments& a, const ExactHead& h, std::vector<double>& dk,
                   std::vector<double>& dv) {
  const std::int64_t d = a.o.shape[3];
  const Visibility visibility(h.segment, a.options);
  float amax = 0.0f;
  for (std::int64_t query = 0; query < h.segment.q_length; ++query) {
    for (const float ds : query_gradients<Io>(a, h, query, visibility.keys_of(query)).ds) {
      amax = std::fabs(ds) > amax ? std::fabs(ds) : amax;
    }
  }
  const float ds_scale = formats::compute_scale(amax, formats::max_value(formats::kE5M2), 0.0f,
                                                /*pow2=*/false, largest_of_dtype(a.o.dtype));
  const double ds_factor = static_cast<double>(1.0f / ds_scale) * a.options.scale;
  std::vector<double> dq(h.q.size(), 0.0);
  for (std::int64_t query = 0; query < h.segment.q_length; ++query) {
    const KeySpan span = visibility.keys_of(query);
    const QueryGradients g = query_gradients<Io>(a, h, query, span);
    for (std::int64_t key = span.first; key < span.end; ++key) {
      const auto at = static_cast<std::size_t>(key - span.first);
      const double ds = ds_factor * Fp8::round_ds(g.ds[at], ds_scale);
      const float p = Fp8::round_p(static_cast<float>(g.p[at]), a.options.p_scale);
      add_row(dq, query, ds, h.k, key, d);
      add_row(dk, key, ds, h.q, query, d);
      add_row(dv, key, p / a.options.p_scale, h.dout, query, d);
    }
  }
  store_rows<Io>(dq, a.dq, h.segment.q_begin, h.batch, h.head);
}

template <class Io>
void backward_all(const BackwardArguments& a) {
  const std::int64_t group = a.q.rows.shape[2] / a.k.rows.shape[2];
  std::vector<double> dk;
  std::vector<double> dv;
  for_each_head(a.q, a.k, a.v, a.options, [&](ExactHead& h) {
    h.dout =
        dequantized<E5m2Io>(a.dout_codes, h.segment.q_begin, h.segment.q_length, h.batch, h.head);
    if (h.head % group == 0) {
      dk.assign(h.k.size(), 0.0);
      dv.assign(h.k.size(), 0.0);
    }
    backward_head<Io>(a, h, dk, dv);
    if (h.head % group != group - 1) return;
    store_rows<Io>(dk, a.dk, h.segment.k_begin, h.batch, h.key_head);
    store_rows<Io>(dv, a.dv, h.segment.k_begin, h.batch, h.key_head);
  });
}

}  // namespace

void flash_attention_fp8_forward_exact(const Stream& /*stream*/, const ops::AttentionRows& q,
                                       const ops::AttentionRows& k, const ops::AttentionRows& v,
                                       View o, View lse,
                                       const ops::FlashAttentionOptions& options) {
  if (!options.cu_seqlens_q.empty()) {
    zero_unused_rows(o, options.cu_seqlens_q.back());
    fill_unused_lse(lse, options.cu_seqlens_q.back());
  }
  const ForwardArguments a{q, k, v, o, lse, options};
  with_io(o.dtype, [&](auto io) {
    for_each_head(q, k, v, options, [&](ExactHead& h) {
      for (std::int64_t query = 0; query < h.segment.q_length; ++query) {
        forward_query<decltype(io)>(a, h, query);
      }
    });
  });
}

void flash_attention_fp8_backward_exact(const Stream& /*stream*/, ConstView dout,
                                        const ops::AttentionRows& dout_codes,
                                        const ops::AttentionRows& q, const ops::AttentionRows& k,
                                        const ops::AttentionRows& v, ConstView o, ConstView lse,
                                        View delta, View dq, View dk, View dv,
                                        const ops::FlashAttentionOptions& options) {
  if (!options.cu_seqlens_q.empty()) {
    zero_unused_rows(dq, options.cu_seqlens_q.back());
    zero_unused_rows(dk, options.cu_seqlens_k.back());
    zero_unused_rows(dv, options.cu_seqlens_k.back());
  }
  const BackwardArguments a{dout, dout_codes, q, k, v, o, lse, delta, dq, dk, dv, options};
  with_io(o.dtype, [&](auto io) { backward_all<decltype(io)>(a); });
}

}  // namespace kitchen::reference
