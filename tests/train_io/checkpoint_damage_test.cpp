#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/reference/cpu_backend.h"
#include "kitchen/train/checkpoint.h"
#include "kitchen/train/checkpoint_errors.h"
#include "kitchen/train/durable_file.h"
#include "train_io/checkpoint_fixture.h"
#include "train_io/temp_folder.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <limits>
#include <random>
#include <thread>

namespace kitchen::train {
namespace {

namespace fs = std::filesystem;

using kitchen::testing::listing;
using kitchen::testing::mentions;
using kitchen::testing::message_of;
using kitchen::testing::save_small;
using kitchen::testing::slurp;
using kitchen::testing::SmallState;
using kitchen::testing::spit;
using kitchen::testing::TempFolder;

constexpr const char* kFiles[] = {"model.safetensors", "optimizer.safetensors", "index.json"};

/// Expects that the checkpoint of step 20 is refused and that of step 10 is opened, with one
/// warning.
::testing::AssertionResult falls_back(const std::string& root, const std::string& file) {
  const LogCapture log;
  const auto loaded = open_latest_checkpoint(root);
  if (!loaded) return ::testing::AssertionFailure() << "nothing was opened";
  if (loaded->step() != 10) return ::testing::AssertionFailure() << "step " << loaded->step();
  if (log.count(LogLevel::warning, "refused were") == 1 &&
      log.count(LogLevel::warning, "iter_0000020/" + file) == 1) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "warnings: " << log.text();
}

/// Opening throws, and not because of the format version.
bool is_damaged(const std::string& folder) {
  try {
    (void)LoadedCheckpoint::open(folder);
    return false;
  } catch (const UnknownVersionError&) {
    return false;
  } catch (const RuntimeError&) {
    return true;
  }
}

// labels: K01 train.Checkpoint
TEST(CheckpointDamage, FileCutAtAnyByteIsRefusedAndTheOneBeforeLoads) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  logger().set_level(LogLevel::error);  // thousands of warnings would bury a failure
  save_small(context, root.path(), 10);
  save_small(context, root.path(), 20);
  for (const char* file : kFiles) {
    const std::string path = root / "iter_0000020/" + file;
    const std::string whole = slurp(path);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      spit(path, whole.substr(0, size));
      ASSERT_TRUE(falls_back(root.path(), file)) << file << " cut to " << size;
    }
    fs::remove(path);
    ASSERT_TRUE(falls_back(root.path(), file)) << file << " removed";
    spit(path, whole + "\n");
    ASSERT_TRUE(falls_back(root.path(), file)) << file << " made longer";
    spit(path, whole);
  }
  const SmallState target(context);
  open_latest_checkpoint(root.path())->load_into(target.tensors());
  EXPECT_EQ(target.bits(), SmallState(context, 20).bits());
  logger().set_level(LogLevel::warning);
}

// labels: K01 train.Checkpoint
TEST(CheckpointDamage, AnyFlippedBitIsRefusedAndTheOneBeforeLoads) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  logger().set_level(LogLevel::error);
  save_small(context, root.path(), 10);
  save_small(context, root.path(), 20);
  for (const char* file : kFiles) {
    const std::string path = root / "iter_0000020/" + file;
    std::string bytes = slurp(path);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      const auto mask = static_cast<char>(1u << bit % 8);
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ mask);
      spit(path, bytes);
      ASSERT_TRUE(is_damaged(root / "iter_0000020")) << file << " bit " << bit;
      if (bit % 61 == 0) {
        ASSERT_TRUE(falls_back(root.path(), file)) << file << " bit " << bit;
      }
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ mask);
    }
    spit(path, bytes);
  }
  EXPECT_EQ(open_latest_checkpoint(root.path())->step(), 20);
  logger().set_level(LogLevel::warning);
}

// labels: K01 train.Checkpoint
TEST(CheckpointDamage, WithNoOtherCheckpointTheMessageTellsFileAndSizes) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  save_small(context, root.path(), 20);
  const std::string path = root / "iter_0000020/model.safetensors";
  const std::uintmax_t size = fs::file_size(path);
  fs::resize_file(path, size - 1);
  const std::string message =
      message_of<RuntimeError>([&] { (void)open_latest_checkpoint(root.path()); });
  EXPECT_TRUE(mentions(message, path + ": wanted " + std::to_string(size) + " bytes, got " +
                                    std::to_string(size - 1)));
}

/// Limits the size of files that this process writes, as a full disk would.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &former_);
    const rlimit limit{bytes, former_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &former_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit former_{};
  void (*handler_)(int);
};

// labels: K07 train.Checkpoint
TEST(CheckpointDamage, FailedWriteNamesBytesAndLeavesTheOldCheckpoint) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  save_small(context, root.path(), 10, 1);
  const Tensor large = Tensor::zeros(context, {300'000}, DType::float32);
  std::string message;
  {
    const FileSizeLimit limit(1 << 20);
    message = message_of<RuntimeError>([&] {
      save_checkpoint(root.path(), {{{"large", large}}, {}}, {20}, 1);
    });
  }
  EXPECT_TRUE(mentions(message, "model.safetensors: writing failed after 1048576 of 12"));
  EXPECT_TRUE(mentions(message, "needed bytes"));
  EXPECT_TRUE(mentions(message, "bytes are free"));
  EXPECT_EQ(listing(root.path()), "iter_0000010,latest_checkpointed_iteration.txt");
  const SmallState target(context);
  open_latest_checkpoint(root.path())->load_into(target.tensors());
  EXPECT_EQ(target.bits(), SmallState(context, 10).bits());
}

// labels: K07 train.Checkpoint
TEST(CheckpointDamage, TooLittleSpaceIsToldBeforeAnyByteIsWritten) {
  const TempFolder root;
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  const std::string message =
      message_of<RuntimeError>([&] { require_free_bytes(root.path(), kHuge); });
  EXPECT_TRUE(mentions(message, std::to_string(kHuge) + " bytes are needed"));
  EXPECT_TRUE(mentions(message, "are free"));
  require_free_bytes(root.path(), 1);
}

/// Saves steps first, first + 1, ... until it is killed.
[[noreturn]] void save_until_killed(const std::string& root, std::int64_t first) {
  const ContextPtr context = reference::make_cpu_context();
  for (std::int64_t step = first;; ++step) save_small(context, root, step, 1);
}

/// Kills a saving process at a random moment, again and again, in one folder.
void kill_saves(int num_kills, unsigned seed) {
  const TempFolder root;
  const ContextPtr context = reference::make_cpu_context();
  save_small(context, root.path(), 1, 1);
  std::mt19937 random(seed);
  std::int64_t last = 1;
  for (int kill = 0; kill < num_kills; ++kill) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) save_until_killed(root.path(), last + 1);
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 30'000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);

    const LogCapture log;
    const auto loaded = open_latest_checkpoint(root.path());
    ASSERT_TRUE(loaded.has_value()) << listing(root.path());
    ASSERT_GE(loaded->step(), last);
    ASSERT_EQ(log.count(LogLevel::warning, ""), 0) << log.text();
    ASSERT_EQ(slurp(root / kTrackerName), std::to_string(loaded->step()) + "\n");
    const SmallState target(context);
    loaded->load_into(target.tensors());
    ASSERT_EQ(target.bits(), SmallState(context, loaded->step()).bits());
    last = loaded->step();
  }
  save_small(context, root.path(), last + 2, 1);
  char newest[32];
  std::snprintf(newest, sizeof newest, "iter_%07d", static_cast<int>(last + 2));
  EXPECT_EQ(listing(root.path()), newest + std::string(",") + kTrackerName);
}

// labels: K05 train.Checkpoint
TEST(CheckpointDamage, KilledSavesNeverLeaveAHalfCheckpoint) {
  kill_saves(20, 1);
}

// labels: K05 train.Checkpoint slow
TEST(CheckpointDamage, HundredKilledSavesNeverLeaveAHalfCheckpoint) {
  kill_saves(100, 2);
}

}  // namespace
}  // namespace kitchen::train
