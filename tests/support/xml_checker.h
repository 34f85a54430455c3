#pragma once

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <vector>

namespace kitchen::testing {

/// A small strict reader of XML: balanced tags, quoted and unique attributes, known references, no
/// bare
/// '<' or '&', unique ids and existing targets of references to ids.
class XmlChecker {
 public:
  explicit XmlChecker(std::string text) : text_(std::move(text)) { run(); }

  /// Empty if the text is well-formed; else the first error with its byte position.
  [[nodiscard]] const std::string& error() const { return error_; }
  /// Number of elements of name `tag`.
  [[nodiscard]] int count(const std::string& tag) const {
    int found = 0;
    for (const std::string& name : tags_) found += name == tag;
    return found;
  }

 private:
  void run() {
    while (error_.empty() && at_ < text_.size()) {
      if (text_.compare(at_, 9, "<!DOCTYPE") == 0) {
        at_ = text_.find('>', at_) + 1;
      } else if (text_[at_] == '<') {
        read_tag();
      } else {
        read_character();
      }
    }
    if (error_.empty() && !open_.empty()) fail("never closed: " + open_.back());
    for (const std::string& target : targets_) {
      if (error_.empty() && ids_.count(target) == 0)
        fail("reference to an id that is not there: " + target);
    }
  }

  void read_tag() {
    ++at_;
    if (peek() == '/') {
      ++at_;
      const std::string name = read_name();
      if (open_.empty() || open_.back() != name)
        return fail("closes " + name + ", which is not the open element");
      open_.pop_back();
      return expect('>');
    }
    const std::string name = read_name();
    if (name.empty()) return fail("a bare '<'");
    tags_.push_back(name);
    std::set<std::string> seen;
    while (error_.empty() && peek() == ' ') {
      ++at_;
      if (peek() != '/' && peek() != '>') read_attribute(seen);
    }
    if (peek() == '/') {
      ++at_;
    } else {
      open_.push_back(name);
    }
    expect('>');
    // A style sheet is not XML text in HTML; it must only not end early.
    if (name == "style") at_ = text_.find("</style>", at_);
  }

  void read_attribute(std::set<std::string>& seen) {
    const std::string name = read_name();
    if (name.empty() || !seen.insert(name).second)
      return fail("empty or repeated attribute name " + name);
    expect('=');
    expect('"');
    const std::size_t begin = at_;
    while (error_.empty() && at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '<') return fail("'<' in an attribute");
      read_character();
    }
    const std::string value = text_.substr(begin, at_ - begin);
    expect('"');
    if (name == "id" && !ids_.insert(value).second) fail("repeated id " + value);
    if (name == "href" && value[0] == '#') targets_.insert(value.substr(1));
    if (name == "fill" && value.rfind("url(#", 0) == 0)
      targets_.insert(value.substr(5, value.size() - 6));
    for (std::size_t i = 0; name == "aria-labelledby" && i < value.size();) {
      const std::size_t end = std::min(value.find(' ', i), value.size());
      targets_.insert(value.substr(i, end - i));
      i = end + 1;
    }
  }

  void read_character() {
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if (byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r')
      return fail("control character");
    if (byte != '&') {
      ++at_;
      return;
    }
    const std::string reference = text_.substr(at_, text_.find(';', at_) - at_ + 1);
    static const std::set<std::string> kKnown = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    if (kKnown.count(reference) == 0) return fail("a bare '&'");
    at_ += reference.size();
  }

  std::string read_name() {
    const std::size_t begin = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '-' || peek() == '_')
      ++at_;
    return text_.substr(begin, at_ - begin);
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void expect(char c) {
    if (peek() != c) return fail(std::string("expected ") + c);
    ++at_;
  }
  void fail(const std::string& what) {
    if (error_.empty())
      error_ = what + " at byte " + std::to_string(at_) + ": " + text_.substr(at_, 60);
  }

  std::string text_;
  std::size_t at_ = 0;
  std::string error_;
  std::vector<std::string> open_;
  std::vector<std::string> tags_;
  std::set<std::string> ids_;
  std::set<std::string> targets_;
};

}  // namespace kitchen::testing
