#include "common/answer.h"

#include <gtest/gtest.h>

namespace kitchen::tutorials {
namespace {

// labels: tutorials.answer
TEST(Answer, TakesTheSameNumberInAnyNotation) {
  EXPECT_TRUE(check_answer("29", "0x1D").is_right);
  EXPECT_TRUE(check_answer("0x1d, 0.1015625", "0x1D 0.1015625").is_right);
  EXPECT_TRUE(check_answer("1/17 1.0625", "0.058823529 1.0625").is_right);
  EXPECT_TRUE(check_answer("Tokens", "tokens").is_right);
}

// labels: tutorials.answer
TEST(Answer, WholeNumbersAreExactAndOthersWithinHalfAPercent) {
  EXPECT_FALSE(check_answer("252", "253").is_right);
  EXPECT_TRUE(check_answer("41.7", "41.6667").is_right);
  EXPECT_FALSE(check_answer("42", "41.6667").is_right);
}

// labels: tutorials.answer
TEST(Answer, RefusesWhatIsNoAnswerAndSaysWhy) {
  for (const char* wrong : {"", "nan", "inf", "1/0", "12x", "20", "8 12 3", "1e999"}) {
    const Verdict verdict = check_answer(wrong, "8");
    EXPECT_FALSE(verdict.is_right) << wrong;
    EXPECT_FALSE(verdict.text.empty()) << wrong;
    EXPECT_EQ(verdict.text.find("8."), std::string::npos) << "gives the answer away";
  }
  EXPECT_EQ(check_answer("7", "8").text, "Not quite: 7 is too small.");
}

}  // namespace
}  // namespace kitchen::tutorials
