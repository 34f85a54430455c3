#pragma once

#include "kitchen/base/context.h"
#include "kitchen/report/svg.h"

#include <memory>
#include <string>
#include <vector>

/// @file  lesson.h
/// @brief What every tutorial program shares: stages, numbers, figures, exercises and flags.

namespace kitchen::tutorials {

/// How far a number may differ between two runs of one tutorial.
struct Tolerance {
  enum class Kind { exact, within, machine } kind = Kind::exact;
  double relative = 0.0;
};
/// The same digits on every backend and machine.
inline Tolerance exact() {
  return {};
}
/// Within `relative` of the expected number, as sums whose order is free need.
inline Tolerance within(double relative) {
  return {Tolerance::Kind::within, relative};
}
/// A time or a rate: it belongs to one machine and is never compared.
inline Tolerance machine() {
  return {Tolerance::Kind::machine, 0.0};
}

/// One run of a tutorial: prints, and collects what becomes results.json and the figures.
class Lesson {
 public:
  /// Writes into `folder`, which is made if it is missing. @throws IOError if that fails.
  Lesson(std::string name, std::string backend, ContextPtr context, std::string folder);
  ~Lesson();
  Lesson(const Lesson&) = delete;
  Lesson& operator=(const Lesson&) = delete;

  /// Where the tensors of this run live.
  [[nodiscard]] const ContextPtr& context() const { return context_; }

  /// Prints one line, or several.
  void print(const std::string& text);
  /// Prints "what: value unit" and records the value under `key`, which pages refer to.
  /// @throws ValueError if `value` is not finite or `key` was used before.
  void number(const std::string& key, const std::string& what, double value, Tolerance tolerance,
              const std::string& unit = "");
  /// Writes a figure beside results.json; `file_name` ends in .svg.
  void figure(const std::string& file_name, const report::SvgDocument& svg);

  /// Writes results.json and output.txt: the last act of a run.
  void save() const;

 private:
  struct Results;

  std::string name_;
  std::string backend_;
  ContextPtr context_;
  std::string folder_;
  std::unique_ptr<Results> results_;
};

/// A numbered part of a tutorial. Its title is the heading of its prose in the program.
struct Stage {
  std::string title;
  void (*run)(Lesson&);
};

/// A question with an answer that the library computes; nothing is stored.
struct Exercise {
  std::string question;
  std::string hint;
  /// Numbers and words between blanks, as a learner would type them.
  std::string (*answer)(const ContextPtr&);
};

/// The whole of a tutorial's main: reads the flags, runs the stages or checks an answer.
/// @returns 0 done; 1 a wrong answer or a failure; 2 wrong flags; 3 a backend that is not usable, or
///          that lacks a kernel which the tutorial needs.
int run_tutorial(const std::string& name, const std::vector<Stage>& stages,
                 const std::vector<Exercise>& exercises, int argc, char** argv);

}  // namespace kitchen::tutorials
