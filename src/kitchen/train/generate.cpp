#include "kitchen/train/generate.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rng.h"
#include "kitchen/ops/elementwise.h"
#include "kitchen/train/training_step.h"

#include <algorithm>
#include <cmath>

namespace kitchen::train {

namespace {

void check(const GPTModel& model, const std::vector<std::int64_t>& prompt,
           const GenerateOptions& options) {
  if (prompt.empty()) throw ValueError("generate: the prompt is empty; give at least one token");
  if (!(options.temperature >= 0.0)) {
    throw ValueError("generate: temperature is " + std::to_string(options.temperature) +
                     ", expected 0 or more");
  }
  if (options.num_tokens < 0) {
    throw ValueError("generate: num_tokens is " + std::to_string(options.num_tokens) +
                     ", expected 0 or more");
  }
  for (const std::int64_t id : prompt) {
    if (id < 0 || id >= model.options().vocab_size) {
      throw ValueError("generate: token " + std::to_string(id) +
                       " is outside of the vocabulary of " +
                       std::to_string(model.options().vocab_size));
    }
  }
}

/// Draws an index with probability proportional to exp(logit / temperature).
std::int64_t sample(const std::vector<float>& logits, double temperature, double uniform) {
  for (const float logit : logits) {
    if (!std::isfinite(logit)) {
      throw RuntimeError("generate: the model's logits are not finite; its weights are damaged");
    }
  }
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (temperature == 0.0) return largest - logits.begin();
  std::vector<double> cumulative;
  double sum = 0.0;
  for (const float logit : logits) {
    sum += std::exp((static_cast<double>(logit) - static_cast<double>(*largest)) / temperature);
    cumulative.push_back(sum);
  }
  const auto place = std::upper_bound(cumulative.begin(), cumulative.end(), uniform * sum);
  return std::min<std::int64_t>(place - cumulative.begin(),
                                static_cast<std::int64_t>(logits.size()) - 1);
}

}  // namespace

std::vector<std::int64_t> generate(GPTModel& model, const std::vector<std::int64_t>& prompt,
                                   const GenerateOptions& options) {
  check(model, prompt, options);
  const autograd::NoGradGuard guard;
  const bool was_training = model.training;
  model.eval();
  const std::int64_t limit = model.options().max_sequence_length;
  const std::int64_t window = options.window > 0 ? std::min(options.window, limit) : limit;
  const ContextPtr context = model.embedding->word_embeddings->weight.context();
  const Rng rng{splitmix64(options.seed), 0};
  std::vector<std::int64_t> tokens = prompt;
  for (std::int64_t i = 0; i < options.num_tokens; ++i) {
    const auto length = std::min<std::int64_t>(window, static_cast<std::int64_t>(tokens.size()));
    const std::vector<std::int64_t> seen(tokens.end() - length, tokens.end());
    const Tensor ids = Tensor::from_vector(context, {1, length}, seen);
    const Tensor logits = model.forward(ids, position_ids_like(ids), std::nullopt);
    const Tensor last =
        ops::cast(ops::contiguous(logits.detach().slice(1, length - 1, 1)), DType::float32);
    tokens.push_back(sample(last.to_vector<float>(), options.temperature,
                            static_cast<double>(rng.uniform(static_cast<std::uint64_t>(i)))));
  }
  model.train(was_training);
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()), tokens.end()};
}

}  // namespace kitchen::train
