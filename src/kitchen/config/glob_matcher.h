#pragma once

#include "kitchen/config/matcher.h"
#include "kitchen/config/source_location.h"

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

namespace kitchen {

/// A glob pattern, prepared for matching. The rules are those of Python's fnmatch on POSIX, on
/// bytes: the whole text, case-sensitive; `*` any run, also of `.` and `/`; `?` one byte; `[abc]`,
/// `[a-z]`, `[!abc]`;
/// `]` first in a class is literal, an unclosed `[` is literal, and there is no backslash escape.
class GlobPattern {
 public:
  explicit GlobPattern(std::string_view pattern);

  /// Time O(length of pattern · length of text), whatever the stars are.
  [[nodiscard]] bool matches(std::string_view text) const;

  /// True only if every text that `other` matches is proven to match this pattern too.
  [[nodiscard]] bool covers(const GlobPattern& other) const;

 private:
  struct Token {
    bool is_star = false;
    std::bitset<256> bytes;  ///< what one byte may be, unless is_star
  };
  std::vector<Token> tokens_;
};

/// Takes the layers whose module path matches a glob pattern. `*layers.1*` also takes layers 10 to
/// 19;
/// `*layers.1.*` does not.
class GlobMatcher : public Matcher {
 public:
  /// @param name     Label in the recipe file, for messages (Ext).
  /// @param location Where the rule was written (Ext).
  GlobMatcher(std::string pattern, std::string config_key, std::string name = {},
              SourceLocation location = {});

  [[nodiscard]] std::optional<std::string> match(const MatchContext& context) const override;
  /// `GlobMatcher(pattern="*fc2", config_key="bf16")`.
  [[nodiscard]] std::string repr() const override;

  /// True if this rule, tried first, takes every layer that `later` could take.
  [[nodiscard]] bool hides(const GlobMatcher& later) const { return glob_.covers(later.glob_); }

  const std::string pattern;
  const std::string config_key;
  const std::string name;
  const SourceLocation location;

 private:
  GlobPattern glob_;
};

}  // namespace kitchen
