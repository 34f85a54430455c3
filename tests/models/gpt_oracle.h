#pragma once

#include "models/tiny_gpt.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

/// @file  gpt_oracle.h
/// @brief The same GPT written down a second time in fp64 loops, without our kernels.

namespace kitchen::testing {

/// Sum of the token losses of tokens() and labels(), nats, for the local topology.
class GPTOracle {
 public:
  GPTOracle(const TinyGPT& tiny, const Weights& weights) : tiny_(tiny), w_(weights) {
    heads_ = static_cast<std::size_t>(tiny.config.num_attention_heads);
    groups_ = static_cast<std::size_t>(
        tiny.config.num_query_groups.value_or(tiny.config.num_attention_heads));
    hidden_ = static_cast<std::size_t>(tiny.config.hidden_size);
    head_ = hidden_ / heads_;
  }

  [[nodiscard]] double loss_sum() const {
    double sum = 0.0;
    for (std::size_t b = 0; b < kBatch; ++b) sum += sequence_loss(b * kSeq);
    return sum;
  }

 private:
  using Row = std::vector<double>;
  using Rows = std::vector<Row>;

  [[nodiscard]] const Row* find(const std::string& name) const {
    const auto entry = w_.find(name);
    return entry == w_.end() ? nullptr : &entry->second;
  }

  [[nodiscard]] Row linear(const Row& x, const std::string& name) const {
    const Row& weight = w_.at(name + ".weight");
    const Row* bias = find(name + ".bias");
    Row y(weight.size() / x.size());
    for (std::size_t o = 0; o < y.size(); ++o) {
      y[o] = bias != nullptr ? (*bias)[o] : 0.0;
      for (std::size_t i = 0; i < x.size(); ++i) y[o] += weight[o * x.size() + i] * x[i];
    }
    return y;
  }

  [[nodiscard]] Row norm(const Row& x, const std::string& name) const {
    const bool rms = tiny_.config.normalization == "RMSNorm";
    double mean = 0.0;
    for (const double v : x) mean += rms ? 0.0 : v / static_cast<double>(x.size());
    double variance = 0.0;
    for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
    const Row& gamma = w_.at(name + ".weight");
    const Row* beta = find(name + ".bias");
    Row y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      y[i] = (x[i] - mean) / std::sqrt(variance + tiny_.config.layernorm_epsilon) * gamma[i] +
             (beta != nullptr ? (*beta)[i] : 0.0);
    }
    return y;
  }

  void rotate(Row& x, std::size_t position) const {
    if (tiny_.positions != "rope") return;
    const auto r = static_cast<std::size_t>(static_cast<double>(head_) * tiny_.rotary_percent);
    const Row before = x;
    for (std::size_t i = 0; i < r / 2; ++i) {
      const double angle = static_cast<double>(position) *
                           std::pow(100.0, -2.0 * static_cast<double>(i) / static_cast<double>(r));
      x[i] = before[i] * std::cos(angle) - before[i + r / 2] * std::sin(angle);
      x[i + r / 2] = before[i + r / 2] * std::cos(angle) + before[i] * std::sin(angle);
    }
  }

  /// One head's query, key or value of a qkv row; each group holds its queries, its key, its value.
  [[nodiscard]] Row part(const Row& qkv, std::size_t group, std::size_t slot) const {
    const std::size_t per_group = heads_ / groups_ + 2;
    const auto begin =
        qkv.begin() + static_cast<std::ptrdiff_t>((group * per_group + slot) * head_);
    return {begin, begin + static_cast<std::ptrdiff_t>(head_)};
  }

  [[nodiscard]] Row query_or_key(const Row& qkv, std::size_t group, std::size_t slot,
                                 const std::string& norm_name, std::size_t position) const {
    Row x = part(qkv, group, slot);
    if (tiny_.config.qk_layernorm) x = norm(x, norm_name);
    rotate(x, position);
    return x;
  }

  [[nodiscard]] Rows attention(const Rows& x, const std::string& path) const {
    Rows qkv;
    for (const Row& row : x) qkv.push_back(linear(row, path + ".linear_qkv"));
    const std::size_t per_group = heads_ / groups_;
    Rows out(x.size(), Row(hidden_));
    for (std::size_t head = 0; head < heads_; ++head) {
      const std::size_t group = head / per_group;
      for (std::size_t t = 0; t < x.size(); ++t) {
        const Row q = query_or_key(qkv[t], group, head % per_group, path + ".q_layernorm", t);
        Row p(t + 1);
        for (std::size_t u = 0; u <= t; ++u) {
          const Row k = query_or_key(qkv[u], group, per_group, path + ".k_layernorm", u);
          double score = 0.0;
          for (std::size_t i = 0; i < head_; ++i) score += q[i] * k[i];
          p[u] = std::exp(score / std::sqrt(static_cast<double>(head_)));
        }
        double total = 0.0;
        for (const double v : p) total += v;
        for (std::size_t u = 0; u <= t; ++u) {
          const Row v = part(qkv[u], group, per_group + 1);
          for (std::size_t i = 0; i < head_; ++i) out[t][head * head_ + i] += p[u] / total * v[i];
        }
      }
    }
    for (Row& row : out) row = linear(row, path + ".linear_proj");
    return out;
  }

  [[nodiscard]] Row mlp(const Row& x, const std::string& path) const {
    Row h = linear(x, path + ".linear_fc1");
    if (tiny_.config.gated_linear_unit) {
      const std::size_t half = h.size() / 2;
      for (std::size_t i = 0; i < half; ++i) h[i] = h[i] / (1.0 + std::exp(-h[i])) * h[half + i];
      h.resize(half);
    } else {
      for (double& v : h) v *= 0.5 * (1.0 + std::erf(v / std::sqrt(2.0)));
    }
    return linear(h, path + ".linear_fc2");
  }

  static void add(Row& x, const Row& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  [[nodiscard]] Rows embed(std::size_t begin) const {
    const Row& words = w_.at("embedding.word_embeddings.weight");
    const Row* places = find("embedding.position_embeddings.weight");
    Rows x;
    for (std::size_t t = 0; t < kSeq; ++t) {
      const auto id = static_cast<std::size_t>(tokens()[begin + t]);
      Row row(hidden_);
      for (std::size_t i = 0; i < hidden_; ++i) {
        row[i] = words[id * hidden_ + i] + (places != nullptr ? (*places)[t * hidden_ + i] : 0.0);
      }
      x.push_back(row);
    }
    return x;
  }

  [[nodiscard]] double sequence_loss(std::size_t begin) const {
    Rows x = embed(begin);
    for (std::int64_t layer = 0; layer < tiny_.config.num_layers; ++layer) {
      const std::string path = "decoder.layers." + std::to_string(layer);
      Rows normed;
      for (const Row& row : x) normed.push_back(norm(row, path + ".input_layernorm"));
      const Rows attended = attention(normed, path + ".self_attention");
      for (std::size_t t = 0; t < kSeq; ++t) {
        add(x[t], attended[t]);
        add(x[t], mlp(norm(x[t], path + ".pre_mlp_layernorm"), path + ".mlp"));
      }
    }
    double sum = 0.0;
    const char* output = tiny_.tied ? "embedding.word_embeddings" : "output_layer";
    for (std::size_t t = 0; t < kSeq; ++t) {
      const std::int64_t label = labels()[begin + t];
      if (label < 0) continue;
      const Row scores = linear(norm(x[t], "decoder.final_layernorm"), output);
      double total = 0.0;
      for (const double s : scores) total += std::exp(s);
      sum += std::log(total) - scores[static_cast<std::size_t>(label)];
    }
    return sum;
  }

  const TinyGPT& tiny_;
  const Weights& w_;
  std::size_t heads_;
  std::size_t groups_;
  std::size_t hidden_;
  std::size_t head_;
};

}  // namespace kitchen::testing
