#pragma once

#include "kitchen/base/error.h"

#include <any>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kitchen {

/// Arguments of a call whose callee is chosen at run time: positional values and keywords, as in Python.
class BuildArgs {
 public:
  BuildArgs() = default;
  BuildArgs(std::vector<std::any> positional, std::map<std::string, std::any> keywords)
      : positional_(std::move(positional)), keywords_(std::move(keywords)) {}

  [[nodiscard]] const std::vector<std::any>& positional() const { return positional_; }
  [[nodiscard]] const std::map<std::string, std::any>& keywords() const { return keywords_; }
  [[nodiscard]] bool has(const std::string& keyword) const { return keywords_.count(keyword) != 0; }
  void set(const std::string& keyword, std::any value) { keywords_[keyword] = std::move(value); }

  /// Names the positional values and checks the keywords.
  /// @throws TypeError "unexpected keyword argument '<name>'", or for too many or doubled positionals.
  void bind(const std::string& class_name, const std::vector<std::string>& names);

  /// The value of a keyword. @throws TypeError if it is missing or of another C++ type.
  template <class T>
  [[nodiscard]] const T& get(const std::string& keyword) const {
    const auto entry = keywords_.find(keyword);
    if (entry == keywords_.end()) {
      throw TypeError(class_name_ + ": missing required keyword argument '" + keyword + "'");
    }
    return cast<T>(keyword, entry->second);
  }
  /// The value, or `fallback` if the keyword is missing.
  template <class T>
  [[nodiscard]] T get_or(const std::string& keyword, T fallback) const {
    const auto entry = keywords_.find(keyword);
    return entry == keywords_.end() ? fallback : cast<T>(keyword, entry->second);
  }
  /// Assigns the keyword's value to `target` if it is given.
  template <class Target, class T = Target>
  void assign(const std::string& keyword, Target& target) const {
    if (has(keyword)) target = get<T>(keyword);
  }

 private:
  template <class T>
  const T& cast(const std::string& keyword, const std::any& value) const {
    const T* typed = std::any_cast<T>(&value);
    if (typed == nullptr) {
      throw TypeError(class_name_ + ": keyword argument '" + keyword + "' has the wrong type");
    }
    return *typed;
  }

  std::string class_name_ = "build_module";
  std::vector<std::any> positional_;
  std::map<std::string, std::any> keywords_;
};

}  // namespace kitchen
