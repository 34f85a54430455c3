#include "kitchen/base/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace kitchen {

namespace {

/// Longer texts are never compared: the cost is the product of the lengths and a name is short.
constexpr std::size_t kMaxLength = 200;

std::string folded(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<int> table((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> int& { return table[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = static_cast<int>(i);
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replace = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({replace, at(i - 1, j) + 1, at(i, j - 1) + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(a.size(), b.size());
}

std::vector<std::string> nearest_names(std::string_view text,
                                       const std::vector<std::string>& known) {
  std::vector<std::string> names;
  if (text.empty() || text.size() > kMaxLength) return names;
  const std::string wanted = folded(text);
  std::vector<std::pair<int, std::string>> near;
  for (const std::string& name : known) {
    if (name.size() > kMaxLength) continue;
    const std::string candidate = folded(name);
    const int distance = edit_distance(wanted, candidate);
    const std::size_t shorter = std::min(candidate.size(), wanted.size());
    // A third of the letters wrong is a typing error; more is another word, unless one contains the
    // other.
    const bool contains = shorter >= 3 && (candidate.find(wanted) != std::string::npos ||
                                           wanted.find(candidate) != std::string::npos);
    const int allowed = static_cast<int>(std::max<std::size_t>(1, candidate.size() / 3));
    if (distance <= allowed || contains) near.emplace_back(distance, name);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  if (near.size() > 3) near.resize(3);
  for (auto& entry : near) names.push_back(std::move(entry.second));
  return names;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& known) {
  const std::vector<std::string> names = nearest_names(text, known);
  return names.empty() ? std::string() : "did you mean \"" + names.front() + "\"?";
}

std::string join_names(const std::vector<std::string>& names) {
  if (names.empty()) return "none";
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += ", ";
    out += name;
  }
  return out;
}

}  // namespace kitchen
