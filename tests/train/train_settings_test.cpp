#include "kitchen/train/train_settings.h"

#include "kitchen/base/error.h"
#include "kitchen/config/config_value.h"
#include "kitchen/config/yaml.h"
#include "support/expect_error.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <type_traits>
#include <utility>

namespace kitchen::train {
namespace {

using testing::throws;

/// Converts to each type that a setting may have, so that brace initialisation tells how many
/// members there are.
struct AnyMember {
  template <class T,
            class = std::enable_if_t<std::is_same_v<T, std::int64_t> || std::is_same_v<T, double> ||
                                     std::is_same_v<T, bool> || std::is_same_v<T, std::string>>>
  operator T() const;  // NOLINT: implicit on purpose, never defined
};

template <std::size_t>
using Any = AnyMember;

template <class T, class Indices, class = void>
struct IsBraceable : std::false_type {};
template <class T, std::size_t... Is>
struct IsBraceable<T, std::index_sequence<Is...>, std::void_t<decltype(T{Any<Is>()...})>>
    : std::true_type {};

template <class T, std::size_t N = 100>
constexpr std::size_t member_count() {
  if constexpr (IsBraceable<T, std::make_index_sequence<N>>::value) {
    return N;
  } else {
    return member_count<T, N - 1>();
  }
}

/// Another value of the same type.
void perturb(TrainSettings& settings, const Setting& setting) {
  std::visit(
      [&](auto member) {
        auto& value = settings.*member;
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>)
          value = !value;
        else if constexpr (std::is_same_v<T, std::string>)
          value += "x\"\n";
        else if constexpr (std::is_same_v<T, std::optional<std::string>>)
          value = "x";
        else if constexpr (std::is_same_v<T, std::optional<std::int64_t>>)
          value = 77;
        else if constexpr (std::is_same_v<T, double>)
          value = value / 3.0 + 0.1;
        else
          value += (std::int64_t{1} << 60) + 1;
      },
      setting.member);
}

// labels: train.TrainSettings
TEST(TrainSettings, TableHasEveryMemberOnce) {
  EXPECT_EQ(setting_table().size(), member_count<TrainSettings>());
  std::set<std::string> names;
  for (const Setting& setting : setting_table()) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    TrainSettings settings;
    perturb(settings, setting);
    for (const Setting& other : setting_table()) {
      const bool is_same = setting_text(settings, other) == setting_text(TrainSettings(), other);
      EXPECT_EQ(is_same, &other != &setting) << setting.name << " " << other.name;
    }
  }
}

// labels: train.TrainSettings to_json update_from_json
TEST(TrainSettings, JsonBringsEveryValueBack) {
  TrainSettings all;
  for (const Setting& setting : setting_table()) perturb(all, setting);
  TrainSettings back;
  update_from_json(back, to_json(all));
  EXPECT_EQ(to_json(back), to_json(all));
  update_from_json(back, to_json(TrainSettings()));  // null empties what was set
  EXPECT_EQ(to_json(back), to_json(TrainSettings()));
}

// labels: train.TrainSettings update_from_json
TEST(TrainSettings, WrongJsonIsNamedByItsKey) {
  const auto update = [](const std::string& json) {
    TrainSettings settings;
    update_from_json(settings, json);
  };
  EXPECT_TRUE(throws<KeyError>([&] { update(R"({"model":{"num_layer":3}})"); },
                               {"'num_layer'", "num_layers"}));
  EXPECT_TRUE(throws<TypeError>([&] { update(R"({"model":{"num_layers":"3"}})"); },
                                {"num_layers", "\"3\"", "integer"}));
  EXPECT_TRUE(
      throws<TypeError>([&] { update(R"({"model":{"num_layers":3.5}})"); }, {"num_layers", "3.5"}));
  EXPECT_TRUE(throws<TypeError>([&] { update(R"({"model":{"num_layers":9223372036854775808}})"); },
                                {"num_layers", "64 bits"}));
  EXPECT_TRUE(throws<TypeError>([&] { update(R"({"model":{"num_layers":null}})"); },
                                {"num_layers", "null"}));
  EXPECT_TRUE(
      throws<TypeError>([&] { update(R"({"model":{"swiglu":1}})"); }, {"swiglu", "true or false"}));
  EXPECT_TRUE(
      throws<ValueError>([&] { update(R"({"num_layers":3})"); }, {"'num_layers' is 3", "section"}));
  EXPECT_TRUE(throws<ValueError>([&] { update("[]"); }, {"no JSON object"}));
  EXPECT_TRUE(throws<ValueError>([&] { update("{"); }, {"no JSON object"}));
}

// labels: train.TrainSettings update_from_config ruling-6.27
TEST(TrainSettings, YamlOverwritesAndItsMistakesAreNamed) {
  const auto update = [](const std::string& yaml) {
    TrainSettings settings;
    update_from_config(settings, *parse_yaml(yaml, "s.yaml").get_if<ConfigDict>());
    return settings;
  };
  const TrainSettings settings = update(
      "num_layers: 7\nlr: 1\nswiglu: yes\nnormalization: RMSNorm\nsave_interval: ~\nkv_channels: "
      "8\n");
  EXPECT_EQ(settings.num_layers, 7);
  EXPECT_EQ(settings.lr, 1.0);
  EXPECT_TRUE(settings.swiglu);
  EXPECT_EQ(settings.normalization, "RMSNorm");
  EXPECT_FALSE(settings.save_interval.has_value());
  EXPECT_EQ(settings.kv_channels, 8);
  EXPECT_EQ(settings.hidden_size, TrainSettings().hidden_size);
  EXPECT_TRUE(
      throws<KeyError>([&] { (void)update("hiden_size: 8"); }, {"'hiden_size'", "hidden_size"}));
  EXPECT_TRUE(
      throws<TypeError>([&] { (void)update("hidden_size: '8'"); }, {"hidden_size", "\"8\""}));
  EXPECT_TRUE(throws<TypeError>([&] { (void)update("hidden_size: [8]"); },
                                {"hidden_size", "a single value"}));
  EXPECT_TRUE(throws<TypeError>([&] { (void)update("lr: fast"); }, {"lr", "fast", "a number"}));
}

// labels: train.TrainSettings validate T07
TEST(TrainSettings, ValuesThatCannotWorkAreRefusedByTheirFlag) {
  const auto message = [](void (*spoil)(TrainSettings&)) {
    TrainSettings settings;
    spoil(settings);
    try {
      validate(settings);
    } catch (const ValueError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  using S = TrainSettings;
  const std::vector<std::pair<void (*)(S&), std::string>> cases{
      {[](S& s) { s.num_layers = 0; }, "--num-layers is 0"},
      {[](S& s) { s.hidden_size = -8; }, "--hidden-size is -8"},
      {[](S& s) { s.num_attention_heads = 3; }, "--num-attention-heads 3"},
      {[](S& s) { s.num_query_groups = 2; }, "--group-query-attention"},
      {[](S& s) { s.group_query_attention = true; }, "--num-query-groups"},
      {[](S& s) { s.max_position_embeddings = 63; }, "--seq-length 64"},
      {[](S& s) { s.position_embedding_type = "alibi"; }, "'alibi'"},
      {[](S& s) { s.rotary_percent = 1.5; }, "--rotary-percent"},
      {[](S& s) { s.rotary_base = 0.0; }, "--rotary-base"},
      {[](S& s) { s.normalization = "rmsnorm"; }, "'rmsnorm'"},
      {[](S& s) { s.hidden_dropout = 1.0; }, "--hidden-dropout"},
      {[](S& s) { s.attention_dropout = -0.1; }, "--attention-dropout"},
      {[](S& s) { s.precision = "fp16"; }, "'fp16'"},
      {[](S& s) { s.transformer_impl = "te"; }, "'te'"},
      {[](S& s) { s.backend = "tpu"; }, "'tpu'"},
      {[](S& s) { s.recompute_granularity = "full"; }, "'full'"},
      {[](S& s) { s.lr = std::numeric_limits<double>::infinity(); }, "--lr is not finite"},
      {[](S& s) { s.weight_decay = std::numeric_limits<double>::quiet_NaN(); },
       "--weight-decay is not"},
      {[](S& s) { s.adam_beta2 = 1.0; }, "--adam-beta2"},
      {[](S& s) { s.adam_eps = 0.0; }, "--adam-eps"},
      {[](S& s) { s.clip_grad = -1.0; }, "--clip-grad"},
      {[](S& s) { s.weight_decay = -1.0; }, "--weight-decay"},
      {[](S& s) { s.micro_batch_size = 5; }, "--micro-batch-size 5"},
      {[](S& s) { s.exit_interval = 0; }, "--exit-interval is 0"},
      {[](S& s) { s.save_interval = 0; }, "--save-interval is 0"},
      {[](S& s) { s.log_interval = 0; }, "--log-interval is 0"},
      {[](S& s) { s.eval_interval = -1; }, "--eval-interval"},
      {[](S& s) { s.eval_iters = 0; }, "--eval-iters is 0"},
      {[](S& s) { s.keep_checkpoints = -1; }, "--keep-checkpoints"},
      {[](S& s) { s.sample_tokens = -1; }, "--sample-tokens"},
      {[](S& s) { s.num_threads = -1; }, "--num-threads"},
      {[](S& s) { s.num_threads = 100000; }, "--num-threads is 100000, expected at most"},
      {[](S& s) { s.seq_length = std::int64_t{1} << 62; }, "--seq-length is 4611686018427387904"},
      {[](S& s) { s.num_layers = 1000000000000; },
       "--num-layers is 1000000000000, expected at most"},
      {[](S& s) { s.micro_batch_size = s.global_batch_size = std::int64_t{1} << 62; },
       "--micro-batch-size is"},
      {[](S& s) { s.global_batch_size = std::int64_t{1} << 62; }, "--global-batch-size is"},
      {[](S& s) { s.max_position_embeddings = std::int64_t{1} << 62; },
       "--max-position-embeddings is"},
      {[](S& s) { s.kv_channels = std::int64_t{1} << 62; }, "--kv-channels is"},
      {[](S& s) {
         s.group_query_attention = true;
         s.num_query_groups = 3;
       },
       "--num-attention-heads 4 is not a multiple of --num-query-groups 3"},
      {[](S& s) { s.norm_epsilon = 0.0; }, "--norm-epsilon"},
      {[](S& s) { s.init_method_std = -0.1; }, "--init-method-std"},
      {[](S& s) { s.seed = -1; }, "--seed"}};
  for (const auto& [spoil, part] : cases) {
    EXPECT_NE(message(spoil).find(part), std::string::npos) << part << " in: " << message(spoil);
  }
  EXPECT_EQ(message([](S&) {}), "accepted");
}

// labels: train.TrainSettings resume_differences ruling-6.26
TEST(TrainSettings, EveryDifferenceThatChangesTheRunIsListed) {
  for (const Setting& setting : setting_table()) {
    TrainSettings asked;
    perturb(asked, setting);
    const std::string name = setting.name;
    const bool may_change =
        std::string(setting.section) == "run" || name == "data" || name == "kitchen-config-file";
    const std::vector<std::string> lines = resume_differences(TrainSettings(), asked);
    ASSERT_EQ(lines.size(), may_change ? 0u : 1u) << name;
    if (may_change) continue;
    EXPECT_EQ(lines[0].find("--" + name + ": "), 0u) << lines[0];
  }
  TrainSettings asked;
  asked.hidden_size = 64;
  asked.lr = 1.0;
  EXPECT_EQ(resume_differences(TrainSettings(), asked).size(), 2u);
}

}  // namespace
}  // namespace kitchen::train
