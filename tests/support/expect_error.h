#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <typeinfo>
#include <vector>

namespace kitchen::testing {

/// Succeeds if `action` throws exactly E, and its text contains every one of `phrases`.
template <class E, class Action>
::testing::AssertionResult throws(const Action& action, const std::vector<std::string>& phrases) {
  try {
    action();
  } catch (const std::exception& error) {
    if (typeid(error) != typeid(E)) {
      return ::testing::AssertionFailure() << "wrong exception type: " << error.what();
    }
    const std::string text = error.what();
    for (const std::string& phrase : phrases) {
      if (text.find(phrase) == std::string::npos) {
        return ::testing::AssertionFailure() << "\"" << phrase << "\" is not in: " << text;
      }
    }
    return ::testing::AssertionSuccess() << text;
  }
  return ::testing::AssertionFailure() << "nothing was thrown";
}

}  // namespace kitchen::testing
