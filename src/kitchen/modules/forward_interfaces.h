#pragma once

#include "kitchen/base/tensor.h"
#include "kitchen/config/enums.h"

#include <optional>
#include <utility>
#include <vector>

namespace kitchen {

struct PackedSeqParams;

}  // namespace kitchen

/// @file  forward_interfaces.h
/// @brief What a model calls on the parts that a spec chose, whatever their class is.

namespace kitchen::modules {

/// A linear layer: returns the output and, where the caller adds it, the bias.
class ForwardLinear {
 public:
  virtual ~ForwardLinear() = default;
  virtual std::pair<Tensor, std::optional<Tensor>> forward(const Tensor& x) = 0;
};

/// A linear layer for groups of rows: x is sorted by group, the next m_splits[i] rows belong to group i.
/// Returns the output and, where the caller adds them, the groups' biases.
class ForwardGroupedLinear {
 public:
  virtual ~ForwardGroupedLinear() = default;
  virtual std::pair<Tensor, std::optional<std::vector<Tensor>>> forward(
      const Tensor& x, const std::vector<std::int64_t>& m_splits) = 0;
};

/// A norm or the identity.
class ForwardTensor {
 public:
  virtual ~ForwardTensor() = default;
  virtual Tensor forward(const Tensor& x) = 0;
};

/// The attention core: query [sq, b, np, hn], key and value [sk, b, ng, hn] -> [sq, b, np·hn].
class ForwardAttention {
 public:
  virtual ~ForwardAttention() = default;
  virtual Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value,
                         const std::optional<Tensor>& attention_mask,
                         std::optional<AttnMaskType> attn_mask_type = {},
                         const std::optional<Tensor>& attention_bias = {},
                         const PackedSeqParams* packed_seq_params = nullptr) = 0;
};

}  // namespace kitchen::modules
