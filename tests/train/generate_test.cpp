#include "kitchen/train/generate.h"

#include "kitchen/autograd/node.h"
#include "kitchen/base/error.h"
#include "kitchen/train/load_run.h"
#include "support/compare.h"
#include "support/expect_error.h"
#include "train/tiny_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace kitchen::train {
namespace {

using testing::throws;
using testing::TinyRun;

const std::vector<std::int64_t> kPrompt{'i', 'n', ' ', 't', 'h', 'e'};

Tensor logits_of(GPTModel& model, const std::vector<std::int64_t>& tokens) {
  const autograd::NoGradGuard guard;
  const Tensor ids = Tensor::from_vector(model.embedding->word_embeddings->weight.context(),
                                         {1, static_cast<std::int64_t>(tokens.size())}, tokens);
  return model.forward(ids, position_ids_like(ids), std::nullopt).detach();
}

/// A trained model, kept alive with the trainer that made it.
struct Trained {
  explicit Trained(const std::string& recipe = "") {
    run.settings.train_iters = 30;
    run.settings.hidden_dropout = 0.1;
    if (!recipe.empty()) run.settings.kitchen_recipe_name = recipe;
    trainer = std::make_unique<Trainer>(run.settings, reference::make_cpu_context(),
                                        TrainerOutput{&out, false, 80});
    trainer->run();
  }
  GPTModel& model() { return trainer->model(); }

  TinyRun run;
  std::ostringstream out;
  std::unique_ptr<Trainer> trainer;
};

// labels: train.generate
TEST(Generate, SameArgumentsGiveTheSameTokens) {
  Trained trained;
  GenerateOptions options;
  options.num_tokens = 40;
  const auto first = generate(trained.model(), kPrompt, options);
  EXPECT_EQ(first.size(), 40u);
  EXPECT_EQ(first, generate(trained.model(), kPrompt, options));
  EXPECT_TRUE(trained.model().training);  // as before
  options.seed = 5;
  EXPECT_NE(first, generate(trained.model(), kPrompt, options));
  options.num_tokens = 0;
  EXPECT_TRUE(generate(trained.model(), kPrompt, options).empty());
}

// labels: train.generate
TEST(Generate, TemperatureZeroTakesTheMostLikelyToken) {
  Trained trained;
  GenerateOptions options;
  options.num_tokens = 25;  // more than the window of 16
  options.temperature = 0.0;
  const auto found = generate(trained.model(), kPrompt, options);
  trained.model().eval();
  std::vector<std::int64_t> tokens = kPrompt;
  for (int i = 0; i < 25; ++i) {
    const std::vector<std::int64_t> seen(
        tokens.end() - std::min<std::ptrdiff_t>(16, static_cast<std::ptrdiff_t>(tokens.size())),
        tokens.end());
    const std::vector<double> logits = testing::values_of(logits_of(trained.model(), seen));
    const auto last = logits.end() - 128;
    tokens.push_back(std::max_element(last, logits.end()) - last);
  }
  EXPECT_EQ(found, std::vector<std::int64_t>(tokens.begin() + 6, tokens.end()));
  options.seed = 99;
  EXPECT_EQ(found, generate(trained.model(), kPrompt, options));
  options.temperature = 1e-6;  // a draw that is as good as certain
  EXPECT_EQ(found[0], generate(trained.model(), kPrompt, options)[0]);
}

// labels: train.generate
TEST(Generate, DrawsFollowTheSoftmax) {
  Trained trained;
  trained.model().eval();
  const std::vector<double> logits = testing::values_of(logits_of(trained.model(), kPrompt));
  const auto last = logits.end() - 128;
  const auto best = std::max_element(last, logits.end()) - last;
  double sum = 0.0;
  for (auto logit = last; logit != logits.end(); ++logit)
    sum += std::exp((*logit - last[best]) / 0.8);
  const double p = 1.0 / sum;
  int hits = 0;
  constexpr int kDraws = 600;
  for (int i = 0; i < kDraws; ++i) {
    GenerateOptions options;
    options.num_tokens = 1;
    options.seed = static_cast<std::uint64_t>(i);
    hits += generate(trained.model(), kPrompt, options)[0] == best ? 1 : 0;
  }
  // Five standard deviations of a binomial count.
  EXPECT_NEAR(hits, kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p)) + 1);
}

// labels: train.generate
TEST(Generate, WrongArgumentsAndDamagedModelsAreRefused) {
  Trained trained;
  GPTModel& model = trained.model();
  GenerateOptions options;
  EXPECT_TRUE(throws<ValueError>([&] { (void)generate(model, {}, options); }, {"prompt is empty"}));
  EXPECT_TRUE(
      throws<ValueError>([&] { (void)generate(model, {128}, options); }, {"token 128", "128"}));
  EXPECT_TRUE(throws<ValueError>([&] { (void)generate(model, {-1}, options); }, {"token -1"}));
  options.temperature = -0.5;
  EXPECT_TRUE(throws<ValueError>([&] { (void)generate(model, {1}, options); }, {"temperature"}));
  options.temperature = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(throws<ValueError>([&] { (void)generate(model, {1}, options); }, {"temperature"}));
  options = GenerateOptions();
  options.num_tokens = -1;
  EXPECT_TRUE(
      throws<ValueError>([&] { (void)generate(model, {1}, options); }, {"num_tokens is -1"}));
  options.num_tokens = 1;
  model.embedding->word_embeddings->weight.detach().data<std::uint16_t>()[0] =
      0x7fc0;  // NaN in bf16
  EXPECT_TRUE(throws<RuntimeError>([&] { (void)generate(model, {1}, options); }, {"not finite"}));
}

// labels: train.load_run_model train.generate
TEST(LoadRunModel, GivesTheLogitsOfTheTrainedModel) {
  for (const char* recipe : {"", "fp8_cs", "mxfp8"}) {
    Trained trained(recipe);
    trained.model().eval();
    const auto expected = logits_of(trained.model(), kPrompt).to_vector<std::uint16_t>();
    GenerateOptions options;
    options.num_tokens = 20;
    const auto text = generate(trained.model(), kPrompt, options);
    set_default_context(reference::make_cpu_context());
    const std::shared_ptr<GPTModel> loaded = load_run_model(trained.run.settings.run_dir);
    EXPECT_FALSE(loaded->training);
    EXPECT_EQ(logits_of(*loaded, kPrompt).to_vector<std::uint16_t>(), expected) << recipe;
    EXPECT_EQ(generate(*loaded, kPrompt, options), text) << recipe;
    EXPECT_FALSE(loaded->training);
  }
}

// labels: train.load_run_model
TEST(LoadRunModel, MissingCheckpointsAndChangedRecipesAreRefused) {
  TinyRun run;
  set_default_context(reference::make_cpu_context());
  EXPECT_TRUE(
      throws<ValueError>([&] { (void)load_run_model(run.settings.run_dir + "x"); }, {"no run"}));
  run.settings.train_iters = 1;
  run.settings.kitchen_config_file = run.folder() / "r.yaml";
  const std::string matchers =
      "matchers:\n  m: {type: glob, pattern: '*', config: a, enabled: true}\n";
  testing::spit(run.folder() / "r.yaml",
                "configs:\n  a: {kitchen_config_type: QLinearParams, recipe_idx: 2}\n" + matchers);
  run.run();
  EXPECT_NE(load_run_model(run.settings.run_dir), nullptr);
  testing::spit(run.folder() / "r.yaml",
                "configs:\n  a: {kitchen_config_type: QLinearParams, recipe_idx: 1}\n" + matchers);
  EXPECT_TRUE(throws<ValueError>([&] { (void)load_run_model(run.settings.run_dir); }, {"r.yaml"}));
  std::filesystem::remove_all(run.path("checkpoint"));
  EXPECT_TRUE(throws<ValueError>([&] { (void)load_run_model(run.settings.run_dir); },
                                 {"holds no checkpoint"}));
}

}  // namespace
}  // namespace kitchen::train
