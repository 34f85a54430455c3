#include "kitchen/modules/vocab_parallel_embedding.h"

#include "kitchen/autograd/nn_functions.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/modules/init_methods.h"
#include "kitchen/modules/mappings.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen {

VocabParallelEmbedding::VocabParallelEmbedding(std::int64_t num_embeddings,
                                               std::int64_t embedding_dim,
                                               const InitMethod& init_method,
                                               const TransformerConfig& config,
                                               std::shared_ptr<ProcessGroup> tp_group)
    : tp_group_(get_tensor_model_parallel_group_if_none(tp_group, false)) {
  register_parameter("weight", &weight);
  ParameterLayout layout;
  layout.logical_name =
      "embedding" + std::to_string(current_rank_state().next_creation_index()) + ".weight";
  layout.partition_dim = 0;
  layout.partition_rank = tp_group_->rank();
  layout.partition_size = tp_group_->size();
  weight = make_parameter(default_context(), {divide(num_embeddings, tp_group_->size()), embedding_dim},
                          config.params_dtype, layout,
                          config.perform_initialization ? init_method : InitMethod());
  weight.tensor_model_parallel = true;
  weight.partition_dim = 0;
}

Tensor VocabParallelEmbedding::forward(const Tensor& ids) {
  const std::int64_t first_id = tp_group_->rank() * weight.dim(0);
  return reduce_from_tensor_model_parallel_region(autograd::embedding(ids, weight, first_id), tp_group_);
}

}  // namespace kitchen
