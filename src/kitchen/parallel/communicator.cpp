#include "kitchen/parallel/communicator.h"

#include "kitchen/base/error.h"

#include <algorithm>

namespace kitchen::parallel {

int index_of_rank(const std::vector<int>& ranks, int rank) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  if (found == ranks.end()) {
    throw ValueError("rank " + std::to_string(rank) + " is no member of " +
                     describe_group("", ranks));
  }
  return static_cast<int>(found - ranks.begin());
}

std::string describe_group(const std::string& name, const std::vector<int>& ranks) {
  std::string text = name.empty() ? "[" : name + " [";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return text + "]";
}

}  // namespace kitchen::parallel
