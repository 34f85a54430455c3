#pragma once

#include "kitchen/models/transformer_block.h"
#include "kitchen/modules/column_parallel_linear.h"
#include "kitchen/modules/dropout.h"
#include "kitchen/modules/vocab_parallel_embedding.h"
#include "kitchen/parallel/process_group_collection.h"

#include <memory>
#include <optional>
#include <string>

namespace kitchen {

/// Token and position embedding with dropout. [b, s] -> [s, b, h], or this rank's part of the
/// sequence under sequence parallelism.
class LanguageModelEmbedding : public MegatronModule {
 public:
  LanguageModelEmbedding(std::shared_ptr<TransformerConfig> config, std::int64_t vocab_size,
                         std::int64_t max_sequence_length, bool learned_positions,
                         std::shared_ptr<ProcessGroup> tp_group = nullptr);

  Tensor forward(const Tensor& input_ids, const Tensor& position_ids);

  std::shared_ptr<VocabParallelEmbedding> word_embeddings;
  std::shared_ptr<VocabParallelEmbedding> position_embeddings;  ///< null with rotary positions
  std::shared_ptr<Dropout> embedding_dropout;
  [[nodiscard]] std::string class_name() const override { return "LanguageModelEmbedding"; }

 private:
  std::shared_ptr<ProcessGroup> tp_group_;
};

/// Arguments of GPTModel besides config and layers.
struct GPTModelOptions {
  std::int64_t vocab_size = 0;
  /// Rows of the embedding and of the output weight; 0: vocab_size. Further rows are padding, so
  /// that the table can be split evenly: no logit, loss or gradient comes from them.
  std::int64_t padded_vocab_size = 0;
  std::int64_t max_sequence_length = 0;
  bool share_embeddings_and_output_weights = false;
  std::string position_embedding_type = "learned_absolute";  ///< or "rope", "none"
  RotaryOptions rotary;
  std::shared_ptr<const ProcessGroupCollection> pg_collection;  ///< null: the default groups
};

/// Decoder-only language model.
///
/// On several tensor-parallel ranks each holds a part of every split weight, all take the same
/// input, and all get the same losses and logits. Under sequence parallelism the activations between
/// the split layers are split along the sequence, whose length the group's size must divide.
class GPTModel : public MegatronModule {
 public:
  /// Builds embedding, decoder and output layer, then calls finish_init of each layer that has it with the
  /// configuration that config->quant_recipe chooses for the layer's dotted path.
  /// @throws ValueError on sizes or an unknown position type; errors of finish_init carry the suffix
  ///         " (module <path>)".
  GPTModel(std::shared_ptr<TransformerConfig> config, const TransformerBlockSubmodules& layers,
           const GPTModelOptions& options);

  /// @param input_ids, position_ids, labels [b, s] int64; labels may be undefined.
  /// @returns losses [b, s] float32 with labels, else logits [b, s, vocab] in the parameters' dtype.
  /// @throws ValueError if the shapes differ, or for more positions than the position table has rows.
  Tensor forward(const Tensor& input_ids, const Tensor& position_ids,
                 const std::optional<Tensor>& attention_mask, const Tensor& labels = {});

  std::shared_ptr<LanguageModelEmbedding> embedding;
  std::shared_ptr<TransformerBlock> decoder;
  std::shared_ptr<ColumnParallelLinear> output_layer;

  [[nodiscard]] const GPTModelOptions& options() const { return options_; }
  [[nodiscard]] std::string class_name() const override { return "GPTModel"; }

 private:
  void check_options() const;
  void finish_layers();
  void check_inputs(const Tensor& input_ids, const Tensor& position_ids, const Tensor& labels) const;

  GPTModelOptions options_;
};

}  // namespace kitchen
