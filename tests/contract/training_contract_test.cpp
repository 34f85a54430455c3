#include "contract/contract.h"

#include "train/tiny_run.h"

namespace kitchen::testing {
namespace {

class TrainingContract : public BackendContract {
 protected:
  /// The loss of each step of `run` on a fresh context.
  std::vector<double> losses_of(TinyRun& run, const std::function<ContextPtr()>& make_context) {
    run.make_context = make_context;
    EXPECT_EQ(run.run(), train::RunEnd::finished);
    std::vector<double> losses;
    for (const auto& line : run.lines()) losses.push_back(line["train_loss"].get<double>());
    return losses;
  }

  /// Trains once on the reference backend and once on the one under test: 20 steps, and every loss
  /// within 0.5 %. What is not exact are the sums of products, whose rounding the steps amplify.
  void expect_equal_training(const std::function<void(train::TrainSettings&)>& choose) {
    const std::string name = GetParam();
    const auto on_backend = [&name]() -> ContextPtr {
      for (const AvailableBackend& backend : available_backends()) {
        if (backend.name == name) return backend.make_context(0);
      }
      return nullptr;
    };
    TinyRun expected;
    TinyRun actual;
    for (TinyRun* run : {&expected, &actual}) choose(run->settings);
    const std::vector<double> want = losses_of(expected, &reference::make_cpu_context);
    const std::vector<double> found = losses_of(actual, on_backend);
    ASSERT_EQ(want.size(), 20u);
    EXPECT_TRUE(close(want, found, 0.0, 5e-3));
    EXPECT_LT(found.back(), found.front() - 1.0);
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, TrainingContract, ::testing::ValuesIn(backend_names()),
                         &name_of_backend);

// labels: train.Trainer
TEST_P(TrainingContract, LossesOf20StepsAreTheReferencesWithoutAndWithQuantization) {
  for (const std::int64_t recipe : {1, 2}) {
    SCOPED_TRACE("recipe " + std::to_string(recipe));
    expect_equal_training([&](train::TrainSettings& s) { s.kitchen_recipe_number = recipe; });
  }
}

/// FP8 with current scaling in all linear layers, flash attention in bfloat16.
constexpr const char* kFlashAttention = R"(configs:
  mixed:
    kitchen_config_type: CompoundParams
    configs:
      - {kitchen_config_type: QLinearParams, recipe_idx: 2}
      - {kitchen_config_type: QFlashAttentionParams, recipe_name: triton_fa_bf16_for_all_natural}
matchers:
  all: {type: glob, pattern: "*", config: mixed, enabled: true}
)";

// labels: train.Trainer ops.rotary ops.record_amax ops.update_delayed_scale
TEST_P(TrainingContract, LossesOfALlamaWithDelayedScalingAreTheReferences) {
  expect_equal_training([](train::TrainSettings& s) {
    s.position_embedding_type = "rope";
    s.normalization = "RMSNorm";
    s.swiglu = true;
    s.group_query_attention = true;
    s.num_query_groups = 1;
    s.kitchen_recipe_name = "fp8_delayed";
  });
}

// labels: train.Trainer ops.flash_attention_forward ops.flash_attention_backward
TEST_P(TrainingContract, LossesWithFlashAttentionAreTheReferences) {
  const TempFolder folder;
  spit(folder / "recipe.yaml", kFlashAttention);
  expect_equal_training([&](train::TrainSettings& s) {
    s.kitchen_config_file = folder / "recipe.yaml";
    s.use_kitchen_attention = true;
    s.kitchen_attention_backend = "fa";
  });
}

}  // namespace
}  // namespace kitchen::testing
