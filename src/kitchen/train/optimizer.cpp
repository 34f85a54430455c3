#include "kitchen/train/optimizer.h"

#include "kitchen/ops/elementwise.h"
#include "kitchen/parallel/process_group_collection.h"

namespace kitchen::train {

Optimizer::Optimizer(Module& model, const Options& options)
    : options_(options), tp_group_(ProcessGroupCollection::use_mpu_process_groups()->tp) {
  for (const auto& [name, parameter] : model.named_parameters()) {
    const Tensor value = parameter->detach();
    Entry entry;
    entry.name = name;
    entry.parameter = parameter;
    entry.main = value.dtype() == DType::float32 ? value : ops::cast(value, DType::float32);
    entry.exp_avg = Tensor::zeros(value.context(), value.shape(), DType::float32);
    entry.exp_avg_sq = Tensor::zeros(value.context(), value.shape(), DType::float32);
    entry.main_grad = Tensor::zeros(value.context(), value.shape(), DType::float32);
    entry.decays = value.rank() >= 2;
    parameter->set_main_grad(entry.main_grad);
    entries_.push_back(std::move(entry));
  }
}

void Optimizer::zero_grad() {
  for (Entry& entry : entries_) {
    ops::fill_inplace(entry.main_grad, 0.0f);
    entry.parameter->set_grad_added_to_main_grad(false);
  }
}

Tensor Optimizer::sum_of_squares() const {
  std::vector<Tensor> grads;
  for (const Entry& entry : entries_) {
    if (entry.parameter->tensor_model_parallel || tp_group_->rank() == 0) {
      grads.push_back(entry.main_grad);
    }
  }
  return tp_group_->all_reduce(ops::sum_squares(grads));
}

ops::ClipScale Optimizer::step(double lr, std::int64_t step) {
  const ops::ClipScale clip =
      ops::clip_scale(sum_of_squares(), static_cast<float>(options_.clip_grad));
  ops::AdamWOptions adamw;
  adamw.lr = static_cast<float>(lr);
  adamw.beta1 = static_cast<float>(options_.beta1);
  adamw.beta2 = static_cast<float>(options_.beta2);
  adamw.eps = static_cast<float>(options_.eps);
  adamw.step = step;
  for (Entry& entry : entries_) {
    adamw.weight_decay = entry.decays ? static_cast<float>(options_.weight_decay) : 0.0f;
    ops::adamw_step(entry.main, entry.exp_avg, entry.exp_avg_sq, entry.main_grad, clip.scale,
                    entry.parameter->detach(), adamw);
    entry.parameter->bump_version();
  }
  return clip;
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> tensors;
  for (const Entry& entry : entries_) {
    if (entry.parameter->dtype() != DType::float32) {
      tensors.push_back({entry.name + ".main", entry.main});
    }
    tensors.push_back({entry.name + ".exp_avg", entry.exp_avg});
    tensors.push_back({entry.name + ".exp_avg_sq", entry.exp_avg_sq});
  }
  return tensors;
}

std::vector<NamedTensor> Optimizer::parameters() const {
  std::vector<NamedTensor> tensors;
  for (const Entry& entry : entries_) {
    tensors.push_back({entry.name, entry.parameter->detach()});
  }
  return tensors;
}

std::int64_t Optimizer::num_parameters() const {
  std::int64_t count = 0;
  for (const Entry& entry : entries_) count += entry.main.numel();
  return count;
}

void Optimizer::mark_updated() {
  for (Entry& entry : entries_) entry.parameter->bump_version();
}

}  // namespace kitchen::train
