#include "kitchen/reference/cross_entropy.h"

#include "kitchen/ops/vocab_parallel_cross_entropy.h"
#include "kitchen/reference/parallel.h"
#include "kitchen/reference/row_io.h"

#include <cstring>
#include <limits>
#include <vector>

namespace kitchen::reference {

namespace {

constexpr int kLanes = 16;
constexpr std::int64_t kBlock = 1024;  ///< logits that are widened at a time

float largest_of(const float* row, std::int64_t count) {
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, -std::numeric_limits<float>::infinity());
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] = row[i + l] > lanes[l] ? row[i + l] : lanes[l];
  }
  for (int l = 0; i + l < count; ++l) lanes[l] = row[i + l] > lanes[l] ? row[i + l] : lanes[l];
  for (int l = 1; l < kLanes; ++l) lanes[0] = lanes[l] > lanes[0] ? lanes[l] : lanes[0];
  return lanes[0];
}

/// Σ exp(row - largest) in the order that the contract states.
float sum_of_exponentials(const float* row, std::int64_t count, float largest) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] += exp_exact(row[i + l] - largest);
  }
  for (int l = 0; i + l < count; ++l) lanes[l] += exp_exact(row[i + l] - largest);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
  }
  return lanes[0];
}

/// The first `count` logits of row `t` in float32: in place, or widened into scratch of the thread.
const float* float_row(const ConstView& logits, std::int64_t t, std::int64_t count) {
  static thread_local std::vector<float> buffer;
  const std::int64_t offset = t * logits.strides[0];
  if (logits.dtype == DType::float32) return static_cast<const float*>(logits.data) + offset;
  buffer.resize(static_cast<std::size_t>(count));
  load_row(logits.data, logits.dtype, offset, 1, count, buffer.data());
  return buffer.data();
}

bool is_known(std::int64_t label, std::int64_t vocab_size) {
  return label >= 0 && label < vocab_size;
}

/// @param label_logit counts only if the label is known.
float loss_of(float label_logit, std::int64_t vocab_size, std::int64_t label, float lse) {
  if (label == ops::kIgnoredLabel) return 0.0f;
  if (!is_known(label, vocab_size)) return std::numeric_limits<float>::quiet_NaN();
  return lse - label_logit;
}

void cross_entropy_forward(const Stream& /*stream*/, ConstView logits, ConstView labels,
                           std::int64_t vocab_size, View losses, View lse) {
  const auto* targets = static_cast<const std::int64_t*>(labels.data);
  auto* loss_out = static_cast<float*>(losses.data);
  auto* lse_out = static_cast<float*>(lse.data);
  parallel_rows(logits.shape[0], vocab_size, [&](std::int64_t t) {
    const float* row = float_row(logits, t, vocab_size);
    const float largest = largest_of(row, vocab_size);
    lse_out[t] = largest + log_exact(sum_of_exponentials(row, vocab_size, largest));
    const float label_logit = is_known(targets[t], vocab_size) ? row[targets[t]] : 0.0f;
    loss_out[t] = loss_of(label_logit, vocab_size, targets[t], lse_out[t]);
  });
}

/// Gradient of one row of logits, block by block, since dlogits may be logits.
void row_gradient(const ConstView& logits, const View& dlogits, std::int64_t t,
                  std::int64_t vocab_size, std::int64_t label, float lse, float dloss) {
  float row[kBlock];
  for (std::int64_t v = 0; v < vocab_size; v += kBlock) {
    const std::int64_t count = std::min(kBlock, vocab_size - v);
    load_row(logits.data, logits.dtype, t * logits.strides[0] + v, 1, count, row);
    for (std::int64_t i = 0; i < count; ++i) row[i] = exp_exact(row[i] - lse);
    if (label >= v && label < v + count) row[label - v] -= 1.0f;
    for (std::int64_t i = 0; i < count; ++i) row[i] *= dloss;
    store_row(row, dlogits.data, dlogits.dtype, t * dlogits.strides[0] + v, 1, count);
  }
}

void zero_columns(const View& x, std::int64_t t, std::int64_t begin) {
  const std::int64_t count = x.shape[1] - begin;
  if (count <= 0) return;
  std::memset(element_at(x.data, x.dtype, t * x.strides[0] + begin), 0,
              static_cast<std::size_t>(count * size_of(x.dtype)));
}

void cross_entropy_backward(const Stream& /*stream*/, ConstView dlosses, ConstView logits,
                            ConstView labels, ConstView lse, std::int64_t vocab_size,
                            View dlogits) {
  const auto* targets = static_cast<const std::int64_t*>(labels.data);
  parallel_rows(logits.shape[0], vocab_size, [&](std::int64_t t) {
    const std::int64_t label = targets[t];
    const bool ignored = label == ops::kIgnoredLabel;
    if (!ignored) {
      const float dloss = is_known(label, vocab_size) ? static_cast<const float*>(dlosses.data)[t]
                                : std::numeric_limits<float>::quiet_NaN();
      row_gradient(logits, dlogits, t, vocab_size, label, static_cast<const float*>(lse.data)[t],
                   dloss);
    }
    zero_columns(dlogits, t, ignored ? 0 : vocab_size);
  });
}

void vocabulary_part_max(const Stream& /*stream*/, ConstView logits, std::int64_t valid,
                         View largest) {
  auto* out = static_cast<float*>(largest.data);
  parallel_rows(logits.shape[0], valid, [&](std::int64_t t) {
    out[t] = largest_of(float_row(logits, t, valid), valid);
  });
}

void vocabulary_part_sums(const Stream& /*stream*/, ConstView logits, ConstView labels,
                          ConstView largest, const ops::VocabularyPart& part, View sums) {
  const std::int64_t tokens = logits.shape[0];
  const std::int64_t valid = part.valid(logits.shape[1]);
  auto* out = static_cast<float*>(sums.data);
  parallel_rows(tokens, valid, [&](std::int64_t t) {
    const float* row = float_row(logits, t, valid);
    const std::int64_t column = static_cast<const std::int64_t*>(labels.data)[t] - part.first_id;
    out[t] = sum_of_exponentials(row, valid, static_cast<const float*>(largest.data)[t]);
    out[tokens + t] = is_known(column, valid) ? row[column] : 0.0f;
  });
}

void vocabulary_loss(const Stream& /*stream*/, ConstView largest, ConstView sums, ConstView labels,
                     std::int64_t vocab_size, View losses, View lse) {
  const std::int64_t tokens = labels.shape[0];
  const auto* sum = static_cast<const float*>(sums.data);
  auto* lse_out = static_cast<float*>(lse.data);
  for (std::int64_t t = 0; t < tokens; ++t) {
    lse_out[t] = static_cast<const float*>(largest.data)[t] + log_exact(sum[t]);
    static_cast<float*>(losses.data)[t] =
        loss_of(sum[tokens + t], vocab_size, static_cast<const std::int64_t*>(labels.data)[t],
                lse_out[t]);
  }
}

void vocabulary_part_gradient(const Stream& /*stream*/, ConstView dlosses, ConstView logits,
                              ConstView labels, ConstView lse, const ops::VocabularyPart& part,
                              View dlogits) {
  const std::int64_t valid = part.valid(logits.shape[1]);
  parallel_rows(logits.shape[0], valid, [&](std::int64_t t) {
    const std::int64_t label = static_cast<const std::int64_t*>(labels.data)[t];
    const bool ignored = label == ops::kIgnoredLabel;
    if (!ignored) {
      const float dloss = is_known(label, part.vocab_size) ? static_cast<const float*>(dlosses.data)[t]
                                : std::numeric_limits<float>::quiet_NaN();
      row_gradient(logits, dlogits, t, valid, label - part.first_id,
                   static_cast<const float*>(lse.data)[t], dloss);
    }
    zero_columns(dlogits, t, ignored ? 0 : valid);
  });
}

}  // namespace

void register_cross_entropy_kernels(Backend& backend) {
  backend.add<ops::CrossEntropyForwardKernel>("exact", &cross_entropy_forward);
  backend.add<ops::CrossEntropyBackwardKernel>("exact", &cross_entropy_backward);
  backend.add<ops::VocabularyPartMaxKernel>("exact", &vocabulary_part_max);
  backend.add<ops::VocabularyPartSumsKernel>("exact", &vocabulary_part_sums);
  backend.add<ops::VocabularyLossKernel>("exact", &vocabulary_loss);
  backend.add<ops::VocabularyPartGradientKernel>("exact", &vocabulary_part_gradient);
}

}  // namespace kitchen::reference
