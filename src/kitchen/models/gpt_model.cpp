#include "kitchen/models/gpt_model.h"

#include "kitchen/autograd/math_functions.h"
#include "kitchen/autograd/view_functions.h"
#include "kitchen/base/error.h"
#include "kitchen/modules/finish_init.h"
#include "kitchen/modules/init_methods.h"
#include "kitchen/modules/mappings.h"
#include "kitchen/modules/vocab_parallel_cross_entropy.h"
#include "kitchen/parallel/rng_tracker.h"

namespace kitchen {

namespace {

InitMethod embedding_init(const TransformerConfig& config) {
  return config.init_method ? config.init_method : init_method_normal(config.init_method_std);
}

/// The first `vocab_size` of the last dimension.
Tensor without_padding(const Tensor& logits, std::int64_t vocab_size) {
  const std::int64_t padding = logits.dim(-1) - vocab_size;
  return padding == 0 ? logits : autograd::split(logits, -1, {vocab_size, padding})[0];
}

bool is_known_position_type(const std::string& type) {
  return type == "learned_absolute" || type == "rope" || type == "none";
}

}  // namespace

LanguageModelEmbedding::LanguageModelEmbedding(std::shared_ptr<TransformerConfig> transformer_config,
                                               std::int64_t vocab_size,
                                               std::int64_t max_sequence_length,
                                               bool learned_positions,
                                               std::shared_ptr<ProcessGroup> tp_group)
    : MegatronModule(std::move(transformer_config)),
      tp_group_(get_tensor_model_parallel_group_if_none(tp_group, false)) {
  word_embeddings = std::make_shared<VocabParallelEmbedding>(
      vocab_size, config->hidden_size, embedding_init(*config), *config, tp_group_);
  register_child("word_embeddings", word_embeddings);
  if (learned_positions) {
    position_embeddings = std::make_shared<VocabParallelEmbedding>(
        max_sequence_length, config->hidden_size, embedding_init(*config), *config, tp_group_);
    register_child("position_embeddings", position_embeddings);
  }
  embedding_dropout = std::make_shared<Dropout>(config->hidden_dropout);
  register_child("embedding_dropout", embedding_dropout);
}

Tensor LanguageModelEmbedding::forward(const Tensor& input_ids, const Tensor& position_ids) {
  // Ids are transposed before the lookup: gathering rows in [s, b] order costs less than transposing [b, s, h].
  const auto in_sequence_order = [](const Tensor& ids) {
    return autograd::contiguous(autograd::transpose(ids, 0, 1));
  };
  Tensor hidden = word_embeddings->forward(in_sequence_order(input_ids));
  if (position_embeddings) {
    hidden = autograd::add(hidden, position_embeddings->forward(in_sequence_order(position_ids)));
  }
  if (!config->sequence_parallel) return embedding_dropout->forward(hidden);
  hidden = scatter_to_sequence_parallel_region(hidden, tp_group_);
  const RngTracker::Fork fork = get_cuda_rng_tracker().fork();
  return embedding_dropout->forward(hidden);
}

GPTModel::GPTModel(std::shared_ptr<TransformerConfig> transformer_config,
                   const TransformerBlockSubmodules& layers, const GPTModelOptions& options)
    : MegatronModule(std::move(transformer_config)), options_(options) {
  if (options_.padded_vocab_size == 0) options_.padded_vocab_size = options_.vocab_size;
  check_options();
  if (!options_.pg_collection) {
    options_.pg_collection = ProcessGroupCollection::use_mpu_process_groups();
  }
  embedding = std::make_shared<LanguageModelEmbedding>(
      config, options_.padded_vocab_size, options_.max_sequence_length,
      options_.position_embedding_type == "learned_absolute", options_.pg_collection->tp);
  const bool rope = options_.position_embedding_type == "rope";
  decoder = std::make_shared<TransformerBlock>(
      config, layers, options_.pg_collection,
      rope ? std::optional<RotaryOptions>(options_.rotary) : std::nullopt);
  ColumnParallelLinear::Args output;
  output.config = config;
  output.init_method = embedding_init(*config);
  output.bias = false;
  output.skip_weight_param_allocation = options_.share_embeddings_and_output_weights;
  output.tp_group = options_.pg_collection->tp;
  output_layer = std::make_shared<ColumnParallelLinear>(config->hidden_size,
                                                        options_.padded_vocab_size, output);
  register_child("embedding", embedding);
  register_child("decoder", decoder);
  register_child("output_layer", output_layer);
  finish_layers();
}

void GPTModel::check_options() const {
  if (options_.vocab_size <= 0 || options_.max_sequence_length <= 0) {
    throw ValueError("GPTModel: vocab_size is " + std::to_string(options_.vocab_size) +
                     " and max_sequence_length is " +
                     std::to_string(options_.max_sequence_length) + "; both must be positive");
  }
  if (options_.padded_vocab_size < options_.vocab_size) {
    throw ValueError("GPTModel: padded_vocab_size is " +
                     std::to_string(options_.padded_vocab_size) + ", below vocab_size " +
                     std::to_string(options_.vocab_size));
  }
  if (!is_known_position_type(options_.position_embedding_type)) {
    throw ValueError("GPTModel: position_embedding_type is '" + options_.position_embedding_type +
                     "', expected 'learned_absolute', 'rope' or 'none'");
  }
}

void GPTModel::finish_layers() {
  for (const auto& [path, module] : named_modules()) {
    auto* layer = dynamic_cast<FinishInit*>(module.get());
    if (layer == nullptr) continue;
    try {
      layer->finish_init(get_quant_config_or_none(path, config->quant_recipe));
    } catch (const Error& error) {
      error.rethrow_with_suffix(" (module " + path + ")");
    }
  }
}

void GPTModel::check_inputs(const Tensor& input_ids, const Tensor& position_ids,
                            const Tensor& labels) const {
  const auto refuse = [](const char* name, const Tensor& tensor, const std::string& expected) {
    throw ValueError(std::string("GPTModel: ") + name + " has shape " + to_string(tensor.shape()) +
                     ", expected " + expected);
  };
  if (input_ids.rank() != 2) refuse("input_ids", input_ids, "[batch, sequence]");
  // Without this, rows past the table would be read as zeros.
  if (embedding->position_embeddings && input_ids.dim(1) > options_.max_sequence_length) {
    refuse("input_ids", input_ids,
           "at most " + std::to_string(options_.max_sequence_length) +
               " positions; raise max_sequence_length");
  }
  const std::string wanted = "that of input_ids, " + to_string(input_ids.shape());
  if (position_ids.shape() != input_ids.shape()) refuse("position_ids", position_ids, wanted);
  if (labels.defined() && labels.shape() != input_ids.shape()) refuse("labels", labels, wanted);
}

Tensor GPTModel::forward(const Tensor& input_ids, const Tensor& position_ids,
                         const std::optional<Tensor>& attention_mask, const Tensor& labels) {
  check_inputs(input_ids, position_ids, labels);
  const Tensor hidden =
      decoder->forward(embedding->forward(input_ids, position_ids), attention_mask);
  const Tensor logits = options_.share_embeddings_and_output_weights
                            ? output_layer->forward(hidden, embedding->word_embeddings->weight).first
                            : output_layer->forward(hidden).first;
  const std::shared_ptr<ProcessGroup>& tp = options_.pg_collection->tp;
  if (!labels.defined()) {
    const Tensor whole = without_padding(gather_from_tensor_model_parallel_region(logits, tp),
                                         options_.vocab_size);
    return autograd::contiguous(autograd::transpose(whole, 0, 1));
  }
  const std::int64_t s = logits.dim(0);
  const std::int64_t b = logits.dim(1);
  const Tensor flat_labels =
      autograd::reshape(autograd::contiguous(autograd::transpose(labels, 0, 1)), {s * b});
  const Tensor losses =
      vocab_parallel_cross_entropy(autograd::reshape(logits, {s * b, logits.dim(2)}), flat_labels,
                                   options_.vocab_size, tp);
  return autograd::transpose(autograd::reshape(losses, {s, b}), 0, 1);
}

}  // namespace kitchen
