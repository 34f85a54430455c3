#include "kitchen/train/checkpoint.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/reference/cpu_backend.h"
#include "kitchen/train/checkpoint_errors.h"
#include "kitchen/train/checkpoint_writer.h"
#include "kitchen/train/durable_file.h"
#include "support/compare.h"
#include "train_io/checkpoint_fixture.h"
#include "train_io/temp_folder.h"

#include <gtest/gtest.h>

#include <numeric>

namespace kitchen::train {
namespace {

namespace fs = std::filesystem;

using kitchen::testing::listing;
using kitchen::testing::mentions;
using kitchen::testing::message_of;
using kitchen::testing::same_bits;
using kitchen::testing::save_small;
using kitchen::testing::slurp;
using kitchen::testing::small_run_state;
using kitchen::testing::SmallState;
using kitchen::testing::spit;
using kitchen::testing::TempFolder;

Tensor iota(const ContextPtr& context, Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(num_elements(shape)));
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::from_vector(context, std::move(shape), values);
}

/// Replaces text in an index.json and seals it again, as another version of the program would.
void edit_index(const std::string& folder, const std::string& from, const std::string& to) {
  std::string text = slurp(folder + "/index.json");
  text.resize(text.rfind(",\n \"checksum\""));
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  spit(folder + "/index.json", text + index_seal(text));
}

// labels: train.Checkpoint
TEST(Checkpoint, StateComesBackBitForBit) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  save_small(context, root.path(), 300);
  EXPECT_EQ(listing(root.path()), "iter_0000300,latest_checkpointed_iteration.txt");
  EXPECT_EQ(listing(root / "iter_0000300"), "index.json,model.safetensors,optimizer.safetensors");
  EXPECT_EQ(slurp(root / "latest_checkpointed_iteration.txt"), "300\n");

  const auto loaded = open_latest_checkpoint(root.path());
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->step(), 300);
  EXPECT_EQ(loaded->training_state(), R"({"consumed_samples":2400})");
  EXPECT_EQ(loaded->recipe_or("none"), "quant: mxfp8");
  EXPECT_EQ(loaded->config(), "lr: 0.003");
  const SmallState target(context);
  const std::int64_t version = target.weight.version();
  loaded->load_into(target.tensors());
  EXPECT_EQ(target.bits(), SmallState(context, 300).bits());
  EXPECT_GT(target.weight.version(), version);
}

// labels: train.Checkpoint
TEST(Checkpoint, FolderWithoutCheckpointGivesNothing) {
  const TempFolder root;
  EXPECT_FALSE(open_latest_checkpoint(root.path()).has_value());
  EXPECT_FALSE(open_latest_checkpoint(root / "missing").has_value());
}

// labels: train.Checkpoint
TEST(Checkpoint, TargetsMayBeStrided) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  const Tensor x = iota(context, {4, 6});
  save_checkpoint(root.path(), {{{"x", x.slice(1, 1, 3)}}, {}}, small_run_state(1));
  const Tensor target = Tensor::zeros(context, {3, 4}, DType::float32);
  open_latest_checkpoint(root.path())->load_into({{{"x", target.transpose(0, 1)}}, {}});
  EXPECT_EQ(target.to_vector<float>(),
            (std::vector<float>{1, 7, 13, 19, 2, 8, 14, 20, 3, 9, 15, 21}));
}

// labels: train.Checkpoint K05
TEST(Checkpoint, OnlyTheNewestStayAndTheSameStepMayBeSavedAgain) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  for (const std::int64_t step : {10, 20, 30, 30}) save_small(context, root.path(), step, 2);
  EXPECT_EQ(listing(root.path()), "iter_0000020,iter_0000030,latest_checkpointed_iteration.txt");
  EXPECT_EQ(open_latest_checkpoint(root.path())->step(), 30);
}

// labels: train.Checkpoint K05
TEST(Checkpoint, DamagedOnesDoNotCountAmongTheKept) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  save_small(context, root.path(), 10, 2);
  save_small(context, root.path(), 20, 2);
  fs::resize_file(root / "iter_0000020/model.safetensors", 5);
  save_small(context, root.path(), 30, 2);
  EXPECT_EQ(listing(root.path()),
            "iter_0000010,iter_0000020,iter_0000030,latest_checkpointed_iteration.txt");
}

// labels: train.Checkpoint K05
TEST(Checkpoint, LeftoversOfAKilledRunAreIgnoredAndThenCleaned) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  save_small(context, root.path(), 10, 1);
  fs::create_directory(root / ".tmp-iter_0000020");
  spit(root / ".tmp-iter_0000020/model.safetensors", "half");
  fs::create_directory(root / ".old-iter_0000005");
  spit(root / "notes.txt", "mine");
  EXPECT_EQ(open_latest_checkpoint(root.path())->step(), 10);
  save_small(context, root.path(), 20, 1);
  EXPECT_EQ(listing(root.path()), "iter_0000020,latest_checkpointed_iteration.txt,notes.txt");
}

// labels: train.Checkpoint K05
TEST(Checkpoint, FolderThatWasNotCommittedIsTheLastResort) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  save_small(context, root.path(), 10);
  save_small(context, root.path(), 20);
  spit(root / "latest_checkpointed_iteration.txt", "10\n");
  EXPECT_EQ(open_latest_checkpoint(root.path())->step(), 10);
  spit(root / "iter_0000010/index.json", "");
  EXPECT_EQ(open_latest_checkpoint(root.path())->step(), 20);
}

// labels: train.Checkpoint K05
TEST(Checkpoint, DamagedTrackerIsReportedAndTheNewestTaken) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  save_small(context, root.path(), 2);
  save_small(context, root.path(), 20);
  for (const char* text : {"", "2", "20", "x\n", "-3\n"}) {
    spit(root / "latest_checkpointed_iteration.txt", text);
    const LogCapture log;
    EXPECT_EQ(open_latest_checkpoint(root.path())->step(), 20) << text;
    EXPECT_EQ(log.count(LogLevel::warning, "names no step"), 1) << text;
  }
}

// labels: K17 train.Checkpoint
TEST(Checkpoint, AllMismatchesAreInOneMessageAndNothingIsLoaded) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  save_checkpoint(root.path(),
                  {{{"good", iota(context, {2})},
                    {"position", iota(context, {1024, 768})},
                    {"vocab", iota(context, {7})},
                    {"extra", iota(context, {9})}},
                   {}},
                  small_run_state(1));
  const Tensor good = Tensor::zeros(context, {2}, DType::float32);
  const auto loaded = open_latest_checkpoint(root.path());
  const std::string message = message_of<RuntimeError>([&] {
    loaded->load_into({{{"good", good},
                        {"position", Tensor::zeros(context, {512, 768}, DType::float32)},
                        {"vocab", Tensor::zeros(context, {7}, DType::bfloat16)},
                        {"absent", Tensor::zeros(context, {1}, DType::float32)}},
                       {}});
  });
  EXPECT_TRUE(mentions(message,
                       "'position': checkpoint has float32 [1024, 768], the model wants "
                       "float32 [512, 768]"));
  EXPECT_TRUE(
      mentions(message, "'vocab': checkpoint has float32 [7], the model wants bfloat16 [7]"));
  EXPECT_TRUE(mentions(message, "'absent': not in the checkpoint"));
  EXPECT_TRUE(mentions(message, "'extra': checkpoint has [9], the model has no such tensor"));
  EXPECT_TRUE(mentions(message, "4 tensors do not fit"));
  EXPECT_EQ(good.to_vector<float>(), (std::vector<float>{0, 0}));
  loaded->load_into({{{"good", good}}, {}}, true);
  EXPECT_EQ(good.to_vector<float>(), (std::vector<float>{0, 1}));
}

// labels: K21 train.Checkpoint
TEST(Checkpoint, MissingRecipeIsTheDefaultWithAWarning) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  save_checkpoint(root.path(), SmallState(context, 1).tensors(), {1});
  const auto loaded = open_latest_checkpoint(root.path());
  const LogCapture log;
  EXPECT_EQ(loaded->recipe_or("bf16"), "bf16");
  EXPECT_EQ(log.count(LogLevel::warning, "no entry 'recipe'; assuming the default, bf16"), 1)
      << log.text();
}

// labels: K21 train.Checkpoint
TEST(Checkpoint, UnknownVersionIsRefusedAndNotSkipped) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  save_small(context, root.path(), 10);
  save_small(context, root.path(), 20);
  edit_index(root / "iter_0000020", "\"version\": 1", "\"version\": 99");
  const std::string message =
      message_of<UnknownVersionError>([&] { (void)open_latest_checkpoint(root.path()); });
  EXPECT_TRUE(mentions(message, "format version 99"));
  EXPECT_TRUE(mentions(message, "reads version 1"));
}

// labels: K21 train.Checkpoint
TEST(Checkpoint, UnsealedUnknownVersionIsNamedToo) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  save_small(context, root.path(), 20);
  std::string text = slurp(root / "iter_0000020/index.json");
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 99");
  spit(root / "iter_0000020/index.json", text);
  EXPECT_TRUE(mentions(message_of<RuntimeError>([&] { (void)open_latest_checkpoint(root.path()); }),
                       "format version 99, this program reads version 1"));
}

// labels: K08 train.Checkpoint
TEST(Checkpoint, FolderThatCannotBeWrittenIsRefusedAtStart) {
  const TempFolder folder;
  spit(folder / "file", "x");
  EXPECT_TRUE(
      mentions(message_of<IOError>([&] { check_writable(folder / "file"); }), folder / "file"));
  EXPECT_TRUE(mentions(message_of<IOError>([&] { check_writable(folder / "file/checkpoint"); }),
                       "cannot be made a folder"));
  check_writable(folder / "a/b/c");
  EXPECT_EQ(listing(folder / "a/b/c"), "");
}

// labels: train.Checkpoint
TEST(Checkpoint, BadStatesAreRefusedBeforeAnythingIsPublished) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  const SmallState state(context, 1);
  save_small(context, root.path(), 10);
  EXPECT_THROW(save_checkpoint(root.path(), state.tensors(), {20, "{no json"}), ValueError);
  EXPECT_THROW(save_checkpoint(root.path(), state.tensors(), {20, "{}", "\xff"}), ValueError);
  EXPECT_THROW(save_checkpoint(root.path(), state.tensors(), {-1}), ValueError);
  EXPECT_EQ(listing(root.path()), "iter_0000010,latest_checkpointed_iteration.txt");
}

/// Rows [start, start + count) of `x` as this rank's shard.
NamedTensor rows(const Tensor& x, std::int64_t start, std::int64_t count) {
  return {"x", x.slice(0, start, count), x.shape(), {start, 0}};
}

// labels: K13 train.Checkpoint
TEST(Checkpoint, ShardsOfOneSplitFillTheTargetsOfAnother) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  const Tensor x = iota(context, {7, 5});
  const CheckpointWriter writer(root.path(), 4, 3);
  writer.begin();
  writer.write_shard(2, {{rows(x, 5, 2)}, {}}, R"({"rng":2})");
  writer.write_shard(0, {{rows(x, 0, 3)}, {}}, R"({"rng":0})");
  writer.write_shard(1, {{rows(x, 3, 2)}, {}}, R"({"rng":1})");
  writer.commit(small_run_state(4), 0);
  const auto loaded = open_latest_checkpoint(root.path());
  EXPECT_EQ(loaded->rank_states(),
            (std::vector<std::string>{R"({"rng":0})", R"({"rng":1})", R"({"rng":2})"}));

  const Tensor whole = Tensor::zeros(context, {7, 5}, DType::float32);
  loaded->load_into({{{"x", whole}}, {}});
  EXPECT_TRUE(same_bits(x, whole));
  const Tensor columns = Tensor::zeros(context, {7, 2}, DType::float32);
  columns.set_shard({"x", {7, 5}, {0, 2}});
  loaded->load_into({{{"x", columns}}, {}});
  EXPECT_TRUE(same_bits(x.slice(1, 2, 2), columns));
}

// labels: K13 train.Checkpoint
TEST(Checkpoint, ShardsThatOverlapOrLeaveHolesAreRefused) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  const Tensor x = iota(context, {7, 5});
  const CheckpointWriter writer(root.path(), 4, 2);
  writer.begin();
  writer.write_shard(0, {{rows(x, 0, 4)}, {}});
  writer.write_shard(1, {{rows(x, 3, 4)}, {}});
  EXPECT_TRUE(mentions(message_of<ValueError>([&] { writer.commit(small_run_state(4), 0); }),
                       "shards of 'x' overlap"));
  EXPECT_EQ(listing(root.path()), "");
  writer.begin();
  writer.write_shard(0, {{rows(x, 0, 3)}, {}});
  writer.write_shard(1, {{rows(x, 4, 3)}, {}});
  writer.commit(small_run_state(4), 0);
  const Tensor whole = Tensor::zeros(context, {7, 5}, DType::float32);
  EXPECT_TRUE(mentions(message_of<RuntimeError>([&] {
                         open_latest_checkpoint(root.path())->load_into({{{"x", whole}}, {}});
                       }),
                       "hold 30 of 35 elements"));
  EXPECT_THROW(writer.write_shard(0, {{{"x", x, {7, 5}, {1, 0}}}, {}}), ValueError);
  EXPECT_THROW(writer.write_shard(2, {}), ValueError);
}

}  // namespace
}  // namespace kitchen::train
