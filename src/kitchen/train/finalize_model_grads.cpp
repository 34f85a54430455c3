#include "kitchen/train/finalize_model_grads.h"

namespace kitchen::train {

void finalize_model_grads(const Module& model, const ProcessGroupCollection& groups) {
  for (const auto& [name, parameter] : model.named_parameters()) {
    const Tensor grad = parameter->main_grad();
    if (!grad.defined()) continue;
    if (parameter->sequence_parallel) (void)groups.tp->all_reduce_inplace_async(grad).wait();
    const ProcessGroup& replicas = parameter->allreduce ? *groups.dp_cp : *groups.expt_dp;
    (void)replicas.all_reduce_inplace_async(grad).wait();
  }
}

}  // namespace kitchen::train
