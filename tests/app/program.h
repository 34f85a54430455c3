#pragma once

#include "support/child_process.h"

#include <string>
#include <vector>

namespace kitchen::testing {

using Words = std::vector<std::string>;

/// The command line of the built program with these arguments.
inline Words program(const Words& arguments) {
  Words command{KITCHEN_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

inline ChildResult run_program(const Words& arguments, const ChildOptions& options = {}) {
  return run_child(program(arguments), options);
}

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A model and a schedule that train in a moment.
inline Words tiny_model() {
  return {"--num-layers",          "1", "--hidden-size", "32",
          "--num-attention-heads", "2", "--seq-length",  "16"};
}

inline Words tiny_training(const std::string& data, const std::string& run_dir) {
  return Words{"train"} + tiny_model() +
         Words{"--micro-batch-size",
               "4",
               "--global-batch-size",
               "4",
               "--train-iters",
               "4",
               "--sample-tokens",
               "8",
               "--log-interval",
               "1",
               "--eval-iters",
               "1",
               "--data",
               data,
               "--run-dir",
               run_dir};
}

/// `count` bytes of text, a function of nothing else.
inline std::string sample_text(std::size_t count) {
  std::string text;
  for (unsigned i = 0; text.size() < count; ++i) {
    text += std::to_string(i * 2654435761u % 1000) + (i % 7 == 0 ? ".\n" : " words ");
  }
  text.resize(count);
  return text;
}

}  // namespace kitchen::testing
