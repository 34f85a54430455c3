#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kitchen::train {

/// A run of tokens [begin, begin + size) of a shared array. Cheap to copy; keeps the array alive.
class TokenSpan {
 public:
  TokenSpan() = default;
  TokenSpan(std::shared_ptr<const std::vector<std::int32_t>> tokens, std::int64_t begin,
            std::int64_t size)
      : tokens_(std::move(tokens)), begin_(begin), size_(size) {}

  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Place of the first token in the whole corpus.
  [[nodiscard]] std::int64_t begin() const { return begin_; }
  /// Tokens [begin, begin + size) of this span; the range is not checked.
  [[nodiscard]] TokenSpan part(std::int64_t begin, std::int64_t size) const {
    return {tokens_, begin_ + begin, size};
  }
  /// The token at `index` of this span; `index` is not checked.
  [[nodiscard]] std::int32_t operator[](std::int64_t index) const {
    return (*tokens_)[static_cast<std::size_t>(begin_ + index)];
  }

 private:
  std::shared_ptr<const std::vector<std::int32_t>> tokens_;
  std::int64_t begin_ = 0;
  std::int64_t size_ = 0;
};

/// What one training step asks of the data.
struct TokenDemand {
  std::int64_t batch_size = 1;  ///< sequences a rank and step
  std::int64_t seq_length = 1;
  std::int64_t data_parallel_size = 1;

  /// batch · seq · ranks + 1: the last token of a sequence needs a successor as its label.
  [[nodiscard]] std::int64_t tokens() const {
    return batch_size * seq_length * data_parallel_size + 1;
  }
};

/// Training and validation part of one text, which share no token.
struct TokenSplit {
  TokenSpan train;
  TokenSpan validation;
  std::string description;  ///< one line for the log: how many tokens went where
};

/// The tokens of one corpus.
class TokenSource {
 public:
  /// The bytes of a raw text file.
  /// @throws IOError naming the path if it is missing, unreadable or a folder; ValueError if it is
  /// empty.
  static TokenSource from_text_file(const std::string& path);

  /// @param name For messages.
  static TokenSource from_tokens(std::string name, std::vector<std::int32_t> tokens);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::int64_t size() const { return tokens_.size(); }
  [[nodiscard]] const TokenSpan& tokens() const { return tokens_; }

  /// @throws ValueError naming the first token id that is negative or >= `vocab_size`, and its
  /// place.
  void require_vocab(std::int64_t vocab_size) const;

  /// The last 5 % become the validation part, but at least the tokens of one step.
  /// @throws ValueError with tokens got and wanted if either part is shorter than one step.
  [[nodiscard]] TokenSplit split(const TokenDemand& demand) const;

 private:
  TokenSource(std::string name, std::vector<std::int32_t> tokens);

  std::string name_;
  TokenSpan tokens_;
};

}  // namespace kitchen::train
