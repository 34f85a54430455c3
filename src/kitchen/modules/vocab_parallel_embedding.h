#pragma once

#include "kitchen/config/transformer_config.h"
#include "kitchen/modules/module.h"

namespace kitchen {

/// Token embedding [vocab, hidden]; on several ranks its rows are split.
class VocabParallelEmbedding : public Module {
 public:
  VocabParallelEmbedding(std::int64_t num_embeddings, std::int64_t embedding_dim,
                         const InitMethod& init_method, const TransformerConfig& config,
                         std::shared_ptr<ProcessGroup> tp_group = nullptr);

  Parameter weight;  ///< [vocab, hidden]

  /// @param ids [...] int64. @returns [..., hidden].
  Tensor forward(const Tensor& ids);
  [[nodiscard]] std::string class_name() const override { return "VocabParallelEmbedding"; }

 protected:
  [[nodiscard]] std::shared_ptr<ProcessGroup> sharding_group() const override { return tp_group_; }

 private:
  std::shared_ptr<ProcessGroup> tp_group_;
};

}  // namespace kitchen
