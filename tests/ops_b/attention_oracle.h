#pragma once

#include "kitchen/ops/flash_attention.h"

#include <cmath>
#include <cstdint>
#include <vector>

/// @file  attention_oracle.h
/// @brief Attention in fp64, one query at a time, from the definition: nothing of our kernels is
/// used.

namespace kitchen::testing {

/// [s, b, heads, d] numbers.
struct Heads {
  std::int64_t s, b, n, d;
  std::vector<double> values;

  [[nodiscard]] std::size_t at(std::int64_t i, std::int64_t batch, std::int64_t head,
                               std::int64_t c) const {
    return static_cast<std::size_t>(((i * b + batch) * n + head) * d + c);
  }
};

struct OracleResult {
  Heads o, dq, dk, dv;
  std::vector<double> lse;  // (b, np, sq)
};

/// Does query `i` (of dimension 0) see key `j`? Straight from the definitions of the options.
inline bool sees(std::int64_t i, std::int64_t j, std::int64_t sq, std::int64_t sk,
                 const ops::FlashAttentionOptions& options) {
  if (!options.cu_seqlens_q.empty()) {
    for (std::size_t s = 0; s + 1 < options.cu_seqlens_q.size(); ++s) {
      const std::int64_t q0 = options.cu_seqlens_q[s];
      const std::int64_t q1 = options.cu_seqlens_q[s + 1];
      if (i < q0 || i >= q1) continue;
      const std::int64_t k0 = options.cu_seqlens_k[s];
      const std::int64_t k1 = options.cu_seqlens_k[s + 1];
      ops::FlashAttentionOptions inner = options;
      inner.cu_seqlens_q.clear();
      inner.cu_seqlens_k.clear();
      return j >= k0 && j < k1 && sees(i - q0, j - k0, q1 - q0, k1 - k0, inner);
    }
    return false;
  }
  const std::int64_t distance = j - (i + sk - sq);
  if (options.causal && distance > 0) return false;
  if (options.window.first >= 0 && distance < -options.window.first) return false;
  return options.window.second < 0 || distance <= options.window.second;
}

/// Forward and gradients. Keys that a query does not see are not read for it.
inline OracleResult attention_oracle(const Heads& q, const Heads& k, const Heads& v,
                                     const Heads& dout, const ops::FlashAttentionOptions& options) {
  OracleResult r{q, q, k, v, {}};
  for (Heads* heads : {&r.o, &r.dq, &r.dk, &r.dv}) heads->values.assign(heads->values.size(), 0.0);
  const double scale = options.scale;
  for (std::int64_t b = 0; b < q.b; ++b) {
    for (std::int64_t h = 0; h < q.n; ++h) {
      const std::int64_t g = h / (q.n / k.n);
      for (std::int64_t i = 0; i < q.s; ++i) {
        std::vector<std::int64_t> keys;
        std::vector<double> p;
        double largest = -INFINITY;
        for (std::int64_t j = 0; j < k.s; ++j) {
          if (!sees(i, j, q.s, k.s, options)) continue;
          double score = 0.0;
          for (std::int64_t c = 0; c < q.d; ++c) {
            score += q.values[q.at(i, b, h, c)] * k.values[k.at(j, b, g, c)];
          }
          keys.push_back(j);
          p.push_back(score * scale);
          largest = std::max(largest, p.back());
        }
        double sum = 0.0;
        for (double& value : p) sum += value = std::exp(value - largest);
        r.lse.push_back(keys.empty() ? -INFINITY : largest + std::log(sum));
        double delta = 0.0;
        std::vector<double> dp(keys.size(), 0.0);
        for (std::size_t n = 0; n < keys.size(); ++n) {
          p[n] /= sum;
          for (std::int64_t c = 0; c < q.d; ++c) {
            const double gradient = dout.values[q.at(i, b, h, c)];
            r.o.values[q.at(i, b, h, c)] += p[n] * v.values[k.at(keys[n], b, g, c)];
            r.dv.values[k.at(keys[n], b, g, c)] += p[n] * gradient;
            dp[n] += gradient * v.values[k.at(keys[n], b, g, c)];
          }
          delta += p[n] * dp[n];
        }
        for (std::size_t n = 0; n < keys.size(); ++n) {
          const double ds = scale * p[n] * (dp[n] - delta);
          for (std::int64_t c = 0; c < q.d; ++c) {
            r.dq.values[q.at(i, b, h, c)] += ds * k.values[k.at(keys[n], b, g, c)];
            r.dk.values[k.at(keys[n], b, g, c)] += ds * q.values[q.at(i, b, h, c)];
          }
        }
      }
    }
  }
  return r;
}

}  // namespace kitchen::testing
