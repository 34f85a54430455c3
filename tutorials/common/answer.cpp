#include "common/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <vector>

namespace kitchen::tutorials {
namespace {

std::vector<std::string> words_of(std::string text) {
  for (char& c : text) {
    c = c == ',' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::optional<double> plain_number(const std::string& word) {
  // strtod takes "nan" and "inf" too, which no answer is.
  if (word.empty() || std::isalpha(static_cast<unsigned char>(word[0])) != 0) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> number_of(const std::string& word) {
  const std::size_t slash = word.find('/');
  if (slash == std::string::npos) return plain_number(word);
  const auto numerator = plain_number(word.substr(0, slash));
  const auto denominator = plain_number(word.substr(slash + 1));
  if (!numerator || !denominator || *denominator == 0.0) return std::nullopt;
  return *numerator / *denominator;
}

bool agrees(double given, double computed) {
  if (computed == std::floor(computed)) return given == computed;
  return std::fabs(given - computed) <= 0.005 * std::fabs(computed);
}

}  // namespace

Verdict check_answer(const std::string& given, const std::string& computed) {
  const std::vector<std::string> found = words_of(given);
  const std::vector<std::string> expected = words_of(computed);
  if (found.size() != expected.size()) {
    return {false, fmt::format("The answer has {} part{}, yours has {}.", expected.size(),
                               expected.size() == 1 ? "" : "s", found.size())};
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto number = number_of(expected[i]);
    const std::string place = expected.size() == 1 ? "" : fmt::format(" part {}", i + 1);
    if (!number) {
      if (found[i] != expected[i])
        return {false, fmt::format("Not quite:{} a word differs.", place)};
      continue;
    }
    const auto mine = number_of(found[i]);
    if (!mine) return {false, fmt::format("\"{}\" is not a number; expected one.", found[i])};
    if (!agrees(*mine, *number)) {
      return {false, fmt::format("Not quite:{} {} is too {}.", place, found[i],
                                 *mine < *number ? "small" : "large")};
    }
  }
  return {true, "Right."};
}

}  // namespace kitchen::tutorials
