#include "kitchen/train/token_source.h"

#include "kitchen/base/error.h"
#include "kitchen/train/durable_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kitchen::train {

namespace {

constexpr std::int64_t kValidationPart = 20;  // 1/20 = 5 %

}  // namespace

TokenSource::TokenSource(std::string name, std::vector<std::int32_t> tokens)
    : name_(std::move(name)) {
  const auto size = static_cast<std::int64_t>(tokens.size());
  tokens_ =
      TokenSpan(std::make_shared<const std::vector<std::int32_t>>(std::move(tokens)), 0, size);
}

TokenSource TokenSource::from_tokens(std::string name, std::vector<std::int32_t> tokens) {
  return TokenSource(std::move(name), std::move(tokens));
}

TokenSource TokenSource::from_text_file(const std::string& path) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const IOError& error) {
    throw IOError(fmt::format("{}; give the path of a text file with --data", error.what()));
  }
  if (text.empty()) {
    throw ValueError(
        fmt::format("{}: has 0 bytes, expected text; give another file with --data", path));
  }
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return TokenSource(path, std::move(tokens));
}

void TokenSource::require_vocab(std::int64_t vocab_size) const {
  for (std::int64_t i = 0; i < size(); ++i) {
    if (tokens_[i] >= 0 && tokens_[i] < vocab_size) continue;
    throw ValueError(fmt::format(
        "{}: token id {} at place {}, expected 0 to {}: the vocabulary has {} ids; use the "
        "tokenizer that made the file or a larger --vocab-size",
        name_, tokens_[i], i, vocab_size - 1, vocab_size));
  }
}

TokenSplit TokenSource::split(const TokenDemand& demand) const {
  const std::int64_t wanted = demand.tokens();
  const std::int64_t num_validation = std::max(size() / kValidationPart, wanted);
  const std::int64_t num_train = size() - num_validation;
  if (num_train < wanted) {
    throw ValueError(fmt::format(
        "{}: got {} tokens, wanted {} for one training step (batch {} x sequence {} x ranks {} + "
        "1) "
        "and as many for validation; use a longer text, a smaller batch or a shorter sequence",
        name_, size(), wanted, demand.batch_size, demand.seq_length, demand.data_parallel_size));
  }
  return {tokens_.part(0, num_train), tokens_.part(num_train, num_validation),
          fmt::format("{}: {} tokens; the first {} for training, the last {} for validation", name_,
                      size(), num_train, num_validation)};
}

}  // namespace kitchen::train
