#pragma once

#include <string>

namespace kitchen::tutorials {

/// What a learner's answer is worth.
struct Verdict {
  bool is_right = false;
  std::string text;  ///< one line for the learner; never the answer itself
};

/// Compares word by word. Words end at blanks and commas. A number may be written as 29,
/// 0x1D, 2.9e1 or 58/2; whole numbers must agree exactly, others within half a percent. Case does
/// not matter.
Verdict check_answer(const std::string& given, const std::string& computed);

}  // namespace kitchen::tutorials
