#pragma once

#include "kitchen/train/checkpoint.h"
#include "kitchen/train/checkpoint_folder.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace kitchen::testing {

/// A small state with every kind of number that training keeps, a function of the step.
struct SmallState {
  explicit SmallState(const ContextPtr& context)
      : weight(Tensor::zeros(context, {3, 5}, DType::bfloat16)),
        bias(Tensor::zeros(context, {1}, DType::bfloat16)),
        moment(Tensor::zeros(context, {3, 5}, DType::float32)),
        counter(Tensor::zeros(context, {}, DType::int64)) {}

  SmallState(const ContextPtr& context, std::int64_t step) : SmallState(context) {
    std::uint32_t x = static_cast<std::uint32_t>(step) * 2654435761u + 1;
    for (const Tensor* tensor : {&weight, &bias, &moment, &counter}) {
      auto* bytes = static_cast<std::uint8_t*>(tensor->raw_data());
      for (std::int64_t i = 0; i < tensor->nbytes(); ++i) {
        x = x * 1664525u + 1013904223u;
        bytes[i] = static_cast<std::uint8_t>(x >> 24);
      }
    }
  }

  [[nodiscard]] train::CheckpointTensors tensors() const {
    return {{{"layer.weight", weight}, {"layer.bias", bias}},
            {{"layer.weight", moment}, {"steps", counter}}};
  }

  [[nodiscard]] std::string bits() const {
    std::string all;
    for (const Tensor* tensor : {&weight, &bias, &moment, &counter}) {
      all.append(static_cast<const char*>(tensor->raw_data()),
                 static_cast<std::size_t>(tensor->nbytes()));
    }
    return all;
  }

  Tensor weight;
  Tensor bias;
  Tensor moment;
  Tensor counter;
};

inline train::CheckpointState small_run_state(std::int64_t step) {
  return {step, R"({"consumed_samples":)" + std::to_string(step * 8) + "}", "quant: mxfp8",
          "lr: 0.003"};
}

inline void save_small(const ContextPtr& context, const std::string& root, std::int64_t step,
                       int keep_last = 0) {
  train::save_checkpoint(root, SmallState(context, step).tensors(), small_run_state(step),
                         keep_last);
}

/// Names in a folder, sorted, with commas between.
inline std::string listing(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace kitchen::testing
