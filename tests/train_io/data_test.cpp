#include "kitchen/base/error.h"
#include "kitchen/reference/cpu_backend.h"
#include "kitchen/train/batch_sampler.h"
#include "kitchen/train/batch_sizes.h"
#include "kitchen/train/byte_tokenizer.h"
#include "kitchen/train/lr_schedule.h"
#include "kitchen/train/token_source.h"
#include "support/compare.h"
#include "train_io/temp_folder.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cmath>
#include <numeric>
#include <set>

namespace kitchen::train {
namespace {

using kitchen::testing::close;
using kitchen::testing::mentions;
using kitchen::testing::message_of;
using kitchen::testing::same_bits;
using kitchen::testing::spit;
using kitchen::testing::TempFolder;

/// Token i has the value i, so that a batch tells where it was read.
TokenSource counting(std::int64_t size) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(size));
  std::iota(tokens.begin(), tokens.end(), 0);
  return TokenSource::from_tokens("counting", std::move(tokens));
}

// labels: train.ByteTokenizer
TEST(ByteTokenizer, AllBytesSurviveARoundTrip) {
  const ByteTokenizer tokenizer;
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text.push_back(static_cast<char>(byte));
  const std::vector<std::int64_t> ids = tokenizer.encode(text);
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], static_cast<std::int64_t>(i));
  EXPECT_EQ(tokenizer.decode(ids), text);
  EXPECT_TRUE(tokenizer.encode("").empty());
  EXPECT_EQ(tokenizer.name(), "byte");
  EXPECT_TRUE(mentions(message_of<ValueError>([&] {
                         (void)tokenizer.decode({65, 256});
                       }),
                       "id 256 at place 1"));
  EXPECT_THROW((void)tokenizer.decode({-1}), ValueError);
}

// labels: T17 train.TokenSource
TEST(TokenSource, UnusableFilesAreRefusedWithAWayOut) {
  const TempFolder folder;
  for (const std::string& path : {folder / "missing.txt", folder.path()}) {
    const std::string message =
        message_of<IOError>([&] { (void)TokenSource::from_text_file(path); });
    EXPECT_TRUE(mentions(message, path));
    EXPECT_TRUE(mentions(message, "--data"));
  }
  spit(folder / "empty.txt", "");
  EXPECT_TRUE(mentions(
      message_of<ValueError>([&] { (void)TokenSource::from_text_file(folder / "empty.txt"); }),
      "has 0 bytes"));
  spit(folder / "text.txt", "\xc3\xa4\n");
  const TokenSource source = TokenSource::from_text_file(folder / "text.txt");
  EXPECT_EQ(source.size(), 3);
  EXPECT_EQ(source.tokens()[0], 0xC3);
}

// labels: T17 train.TokenSource
TEST(TokenSource, APipeWithoutAWriterIsRefusedInsteadOfWaitedFor) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(mentions(
      message_of<IOError>([&] { (void)TokenSource::from_text_file(folder / "pipe"); }), "pipe"));
}

// labels: T17 train.TokenSource
TEST(TokenSource, TooShortTextTellsTokensGotAndWanted) {
  const std::string message = message_of<ValueError>([] { (void)counting(100).split({4, 64, 2}); });
  EXPECT_TRUE(mentions(message, "got 100 tokens"));
  EXPECT_TRUE(mentions(message, "wanted 513"));
  EXPECT_TRUE(mentions(message, "batch 4 x sequence 64 x ranks 2 + 1"));
  EXPECT_TRUE(mentions(message, "use a longer text"));
  EXPECT_THROW((void)counting(1025).split({4, 64, 2}), ValueError);
  EXPECT_EQ(counting(1026).split({4, 64, 2}).validation.size(), 513);
}

// labels: T17 train.TokenSource
TEST(TokenSource, TokenBeyondTheVocabularyIsRefused) {
  const TokenSource source = counting(100);
  source.require_vocab(100);
  const std::string message = message_of<ValueError>([&] { source.require_vocab(99); });
  EXPECT_TRUE(mentions(message, "token id 99 at place 99, expected 0 to 98"));
  EXPECT_THROW(TokenSource::from_tokens("x", {-1}).require_vocab(5), ValueError);
}

// labels: train.TokenSource
TEST(TokenSource, ValidationIsTheLastTwentiethAndIsStated) {
  const TokenSplit split = counting(1000).split({1, 4, 2});
  EXPECT_EQ(split.train.size(), 950);
  EXPECT_EQ(split.validation.size(), 50);
  EXPECT_EQ(split.train[949], 949);
  EXPECT_EQ(split.validation[0], 950);
  EXPECT_TRUE(mentions(split.description, "first 950 for training, the last 50 for validation"));
}

// labels: train.BatchSampler
TEST(BatchSampler, PermutationVisitsEveryPlaceOnce) {
  for (const std::int64_t size : {1, 2, 3, 4, 5, 31, 64, 1000}) {
    for (const std::int64_t epoch : {0, 1, 7}) {
      std::set<std::int64_t> seen;
      for (std::int64_t i = 0; i < size; ++i) {
        const std::int64_t at = permuted_index(42, epoch, i, size);
        EXPECT_GE(at, 0);
        EXPECT_LT(at, size);
        seen.insert(at);
      }
      EXPECT_EQ(static_cast<std::int64_t>(seen.size()), size) << "epoch " << epoch;
    }
  }
}

// labels: train.BatchSampler
TEST(BatchSampler, PermutationLooksRandom) {
  // Spearman's footrule of a random permutation has mean n²/3 and variance 2n³/45, so the mean
  // distance has a standard deviation of sqrt(2n/45) = 21.1; six of them are allowed.
  constexpr std::int64_t kSize = 10'000;
  double distance = 0.0;
  int neighbours = 0;
  for (std::int64_t i = 0; i < kSize; ++i) {
    const std::int64_t at = permuted_index(7, 0, i, kSize);
    distance += std::abs(static_cast<double>(at - i));
    if (i > 0 && at == permuted_index(7, 0, i - 1, kSize) + 1) ++neighbours;
  }
  EXPECT_TRUE(close(std::vector<double>{kSize / 3.0}, {distance / kSize}, 6 * 21.1, 0.0));
  EXPECT_LT(neighbours, 10);  // expected 1, Poisson
}

// labels: train.BatchSampler
TEST(BatchSampler, EpochCoversEachWindowOnceAndWindowsDoNotOverlap) {
  constexpr std::int64_t kSeq = 7;
  const BatchSampler sampler(counting(200).tokens(), kSeq, 1234);
  std::set<std::int64_t> offsets;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    std::set<std::int64_t> starts;
    for (std::int64_t i = 0; i < sampler.samples_per_epoch(); ++i) {
      starts.insert(sampler.start_of(epoch * sampler.samples_per_epoch() + i));
    }
    EXPECT_EQ(static_cast<std::int64_t>(starts.size()), sampler.samples_per_epoch());
    EXPECT_GE(*starts.begin(), 0);
    EXPECT_LE(*starts.rbegin() + kSeq, 199);
    for (const std::int64_t start : starts) EXPECT_EQ((start - *starts.begin()) % kSeq, 0);
    offsets.insert(*starts.begin());
  }
  EXPECT_GT(offsets.size(), 3u);
  EXPECT_EQ(sampler.samples_per_epoch(), 27);
}

// labels: train.BatchSampler
TEST(BatchSampler, LabelsAreTheNextTokens) {
  const ContextPtr context = reference::make_cpu_context();
  const BatchSampler sampler(counting(100).tokens(), 8, 5);
  const Batch batch = sampler.batch(context, 3, {4});
  EXPECT_EQ(batch.inputs.shape(), (Shape{4, 8}));
  EXPECT_EQ(batch.labels.dtype(), DType::int64);
  const auto inputs = batch.inputs.to_vector<std::int64_t>();
  const auto labels = batch.labels.to_vector<std::int64_t>();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(labels[i], inputs[i] + 1);
    const std::int64_t start = sampler.start_of(3 + static_cast<std::int64_t>(i) / 8);
    EXPECT_EQ(inputs[i], start + static_cast<std::int64_t>(i) % 8);
  }
}

// labels: train.BatchSampler
TEST(BatchSampler, ResumeReadsWhatTheStraightRunWouldHaveRead) {
  const ContextPtr context = reference::make_cpu_context();
  const BatchSampler straight(counting(500).tokens(), 6, 99);
  for (std::int64_t consumed = 0; consumed < 400; consumed += 8) {
    const BatchSampler resumed(counting(500).tokens(), 6, 99);
    EXPECT_TRUE(same_bits(straight.batch(context, consumed, {8}).inputs,
                          resumed.batch(context, consumed, {8}).inputs));
  }
  const BatchSampler other(counting(500).tokens(), 6, 100);
  EXPECT_FALSE(
      same_bits(straight.batch(context, 0, {8}).inputs, other.batch(context, 0, {8}).inputs));
}

/// Rows of all ranks and micro steps, in the order of the global batch.
std::vector<std::int64_t> global_batch(const BatchSampler& sampler, const ContextPtr& context,
                                       std::int64_t micro, std::int64_t dp_size) {
  std::vector<std::int64_t> all;
  for (std::int64_t step = 0; step < 8 / (micro * dp_size); ++step) {
    for (std::int64_t rank = 0; rank < dp_size; ++rank) {
      const auto part =
          sampler.batch(context, 16, {micro, step, rank, dp_size}).inputs.to_vector<std::int64_t>();
      all.insert(all.end(), part.begin(), part.end());
    }
  }
  return all;
}

// labels: train.BatchSampler
TEST(BatchSampler, GlobalBatchIsTheSameForEveryDataParallelSize) {
  const ContextPtr context = reference::make_cpu_context();
  const BatchSampler sampler(counting(500).tokens(), 6, 3);
  const auto expected = global_batch(sampler, context, 8, 1);
  EXPECT_EQ(expected.size(), 48u);
  for (const auto& [micro, dp] : {std::pair{4, 2}, {1, 2}, {2, 4}, {1, 8}, {2, 1}}) {
    EXPECT_EQ(global_batch(sampler, context, micro, dp), expected) << micro << " x " << dp;
  }
}

// labels: train.BatchSampler
TEST(BatchSampler, SmallestTextHasOneWindowAndLessIsRefused) {
  const BatchSampler sampler(counting(9).tokens(), 8, 1);
  EXPECT_EQ(sampler.samples_per_epoch(), 1);
  for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(sampler.start_of(i), 0);
  EXPECT_TRUE(mentions(message_of<ValueError>([] { BatchSampler(counting(8).tokens(), 8, 1); }),
                       "got 8 tokens, wanted 9"));
  const ContextPtr context = reference::make_cpu_context();
  EXPECT_THROW((void)sampler.batch(context, 0, {1, 0, 2, 2}), ValueError);
  EXPECT_THROW((void)sampler.batch(context, 0, {0}), ValueError);
  EXPECT_THROW((void)sampler.batch(context, -1, {1}), ValueError);
}

// labels: train.BatchSampler
TEST(ValidationSampler, WindowsFollowTheTextAndStartOver) {
  const ContextPtr context = reference::make_cpu_context();
  const TokenSplit split = counting(400).split({1, 4, 1});  // 20 validation tokens from 380 on
  const ValidationSampler sampler(split.validation, 4);
  EXPECT_EQ(sampler.num_samples(), 4);
  const auto inputs = sampler.batch(context, 2, {3}).inputs.to_vector<std::int64_t>();
  EXPECT_EQ(inputs, (std::vector<std::int64_t>{388, 389, 390, 391, 392, 393, 394, 395, 380, 381,
                                               382, 383}));
  const auto labels = sampler.batch(context, 3, {1}).labels.to_vector<std::int64_t>();
  EXPECT_EQ(labels, (std::vector<std::int64_t>{393, 394, 395, 396}));
}

// labels: T07 train.num_micro_batches
TEST(BatchSizes, IndivisibleGlobalBatchTellsAllNumbersAndTheNearest) {
  EXPECT_EQ(num_micro_batches(16, 4, 2), 2);
  EXPECT_EQ(num_micro_batches(8, 4, 2), 1);
  const std::string message = message_of<ValueError>([] { (void)num_micro_batches(10, 4, 2); });
  EXPECT_TRUE(mentions(message, "--global-batch-size 10"));
  EXPECT_TRUE(mentions(message, "--micro-batch-size 4"));
  EXPECT_TRUE(mentions(message, "data-parallel size 2"));
  EXPECT_TRUE(mentions(message, "--global-batch-size 16 or 8, or --micro-batch-size 1 or 5"));
  EXPECT_TRUE(mentions(message_of<ValueError>([] { (void)num_micro_batches(3, 4, 2); }),
                       "nearest valid: --global-batch-size 8"));
  EXPECT_TRUE(mentions(message_of<ValueError>([] { (void)num_micro_batches(6, 9, 2); }),
                       "--micro-batch-size 3"));
  EXPECT_THROW((void)num_micro_batches(0, 1, 1), ValueError);
  EXPECT_THROW((void)num_micro_batches(4, 0, 1), ValueError);
  EXPECT_THROW((void)num_micro_batches(4, 1, -2), ValueError);
}

// labels: train.LrSchedule
TEST(LrSchedule, WarmsUpLinearlyAndFallsAsACosine) {
  const LrSchedule schedule({1.0, 0.1, 20, 220});
  // Exact at the corners; in between the closed form, one rounding of cos and three of the
  // arithmetic.
  EXPECT_EQ(schedule.at(0), 1.0 / 20);
  EXPECT_EQ(schedule.at(9), 0.5);
  EXPECT_EQ(schedule.at(19), 1.0);
  EXPECT_TRUE(close(std::vector<double>{0.55, 0.1 + 0.45 * (1 + std::sqrt(0.5))},
                    {schedule.at(119), schedule.at(69)}, 0.0, 8 * 0x1p-53));
  EXPECT_EQ(schedule.at(219), 0.1);
  EXPECT_EQ(schedule.at(100'000), 0.1);
  for (std::int64_t step = 20; step < 219; ++step) {
    EXPECT_LT(schedule.at(step), schedule.at(step - 1));
  }
}

// labels: train.LrSchedule
TEST(LrSchedule, WarmUpIsAtMostATenthAndBadRatesAreRefused) {
  EXPECT_EQ(LrSchedule({1.0, 0.1, 20, 50}).warmup_iters(), 5);
  EXPECT_EQ(LrSchedule({1.0, 0.1, 20, 5}).warmup_iters(), 0);
  EXPECT_EQ(LrSchedule({1.0, 0.1, 20, 1}).at(0), 0.1);
  EXPECT_EQ(LrSchedule({1.0, 0.1, 0, 100}).warmup_iters(), 0);
  EXPECT_THROW(LrSchedule({0.1, 1.0, 20, 50}), ValueError);
  EXPECT_THROW(LrSchedule({1.0, 0.1, 20, 0}), ValueError);
  EXPECT_THROW(LrSchedule({1.0, 0.1, -1, 10}), ValueError);
  EXPECT_THROW(LrSchedule({std::nan(""), 0.1, 20, 50}), ValueError);
  EXPECT_THROW(LrSchedule({INFINITY, 0.1, 20, 50}), ValueError);
  EXPECT_THROW((void)LrSchedule({1.0, 0.1, 20, 50}).at(-1), ValueError);
}

}  // namespace
}  // namespace kitchen::train
