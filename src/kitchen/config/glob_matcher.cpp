#include "kitchen/config/glob_matcher.h"

#include <utility>

namespace kitchen {

namespace {

std::size_t index_of(char c) {
  return static_cast<unsigned char>(c);
}

/// Position of the `]` that closes the class whose content starts at `start`, or npos.
std::size_t class_end(std::string_view pattern, std::size_t start) {
  std::size_t position = start;
  if (position < pattern.size() && pattern[position] == '!') ++position;
  if (position < pattern.size() && pattern[position] == ']') ++position;
  return pattern.find(']', position);
}

/// The bytes of a class's content, such as "a-z" or "!0-9".
std::bitset<256> class_bytes(std::string_view content) {
  const bool negated = content.front() == '!';
  if (negated) content.remove_prefix(1);
  std::bitset<256> bytes;
  for (std::size_t i = 0; i < content.size();) {
    if (i + 2 < content.size() && content[i + 1] == '-') {
      for (std::size_t c = index_of(content[i]); c <= index_of(content[i + 2]); ++c) bytes.set(c);
      i += 3;
    } else {
      bytes.set(index_of(content[i]));
      ++i;
    }
  }
  return negated ? ~bytes : bytes;
}

}  // namespace

GlobPattern::GlobPattern(std::string_view pattern) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    Token token;
    if (pattern[i] == '*') {
      if (!tokens_.empty() && tokens_.back().is_star) continue;
      token.is_star = true;
    } else if (pattern[i] == '?') {
      token.bytes.set();
    } else if (pattern[i] == '[' && class_end(pattern, i + 1) != std::string_view::npos) {
      const std::size_t end = class_end(pattern, i + 1);
      token.bytes = class_bytes(pattern.substr(i + 1, end - i - 1));
      i = end;
    } else {
      token.bytes.set(index_of(pattern[i]));
    }
    tokens_.push_back(token);
  }
}

bool GlobPattern::matches(std::string_view text) const {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t token = 0;
  std::size_t position = 0;
  std::size_t star = kNone;  // the last star, which takes the bytes up to `star_end`
  std::size_t star_end = 0;
  while (position < text.size()) {
    const bool has_token = token < tokens_.size();
    if (has_token && tokens_[token].is_star) {
      star = token++;
      star_end = position;
    } else if (has_token && tokens_[token].bytes.test(index_of(text[position]))) {
      ++token;
      ++position;
    } else if (star != kNone) {
      // Only the last star needs to give way: whatever an earlier one could do, the last one can
      // too.
      position = ++star_end;
      token = star + 1;
    } else {
      return false;
    }
  }
  while (token < tokens_.size() && tokens_[token].is_star) ++token;
  return token == tokens_.size();
}

bool GlobPattern::covers(const GlobPattern& other) const {
  // covered[i][j]: the first i tokens of this pattern take every text of the first j tokens of the
  // other.
  const std::vector<Token>& theirs = other.tokens_;
  std::vector<std::vector<bool>> covered(tokens_.size() + 1,
                                         std::vector<bool>(theirs.size() + 1, false));
  covered[0][0] = true;
  for (std::size_t i = 1; i <= tokens_.size(); ++i) {
    const Token& mine = tokens_[i - 1];
    covered[i][0] = mine.is_star && covered[i - 1][0];
    for (std::size_t j = 1; j <= theirs.size(); ++j) {
      const Token& its = theirs[j - 1];
      if (mine.is_star) {
        covered[i][j] = covered[i - 1][j] || covered[i][j - 1];
      } else {
        covered[i][j] = !its.is_star && (its.bytes & ~mine.bytes).none() && covered[i - 1][j - 1];
      }
    }
  }
  return covered[tokens_.size()][theirs.size()];
}

GlobMatcher::GlobMatcher(std::string glob_pattern, std::string key, std::string label,
                         SourceLocation where)
    : pattern(std::move(glob_pattern)),
      config_key(std::move(key)),
      name(std::move(label)),
      location(std::move(where)),
      glob_(pattern) {}

std::optional<std::string> GlobMatcher::match(const MatchContext& context) const {
  if (glob_.matches(context.module_path)) return config_key;
  return std::nullopt;
}

std::string GlobMatcher::repr() const {
  return "GlobMatcher(pattern=\"" + pattern + "\", config_key=\"" + config_key + "\")";
}

}  // namespace kitchen
