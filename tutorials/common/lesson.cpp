#include "common/lesson.h"

#include "kitchen/base/error.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace kitchen::tutorials {
namespace {

std::string kind_name(Tolerance::Kind kind) {
  switch (kind) {
    case Tolerance::Kind::exact:
      return "exact";
    case Tolerance::Kind::within:
      return "within";
    case Tolerance::Kind::machine:
      return "machine";
  }
  throw ValueError("tolerance: unknown kind, expected exact, within or machine");
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw IOError(fmt::format("{}: cannot be written", path));
}

}  // namespace

struct Lesson::Results {
  nlohmann::ordered_json numbers = nlohmann::ordered_json::object();
  nlohmann::ordered_json figures = nlohmann::ordered_json::array();
  std::string output;
};

Lesson::Lesson(std::string name, std::string backend, ContextPtr context, std::string folder)
    : name_(std::move(name)),
      backend_(std::move(backend)),
      context_(std::move(context)),
      folder_(std::move(folder)),
      results_(std::make_unique<Results>()) {
  std::error_code failure;
  std::filesystem::create_directories(folder_, failure);
  if (failure) {
    throw IOError(fmt::format("{}: cannot be made: {}; choose another --output-dir", folder_,
                              failure.message()));
  }
}

Lesson::~Lesson() = default;

void Lesson::print(const std::string& text) {
  std::cout << text << '\n';
  results_->output += text + '\n';
}

void Lesson::number(const std::string& key, const std::string& what, double value,
                    Tolerance tolerance, const std::string& unit) {
  if (!std::isfinite(value)) {
    throw ValueError(fmt::format("{}: {} is {}, expected a finite number", key, what, value));
  }
  if (results_->numbers.contains(key)) {
    throw ValueError(fmt::format("{}: this key was used before; each number needs its own", key));
  }
  results_->numbers[key] = {{"what", what},
                            {"value", value},
                            {"unit", unit},
                            {"kind", kind_name(tolerance.kind)},
                            {"relative", tolerance.relative}};
  print(fmt::format("  {}: {:.7g}{}{}", what, value, unit.empty() ? "" : " ", unit));
}

void Lesson::figure(const std::string& file_name, const report::SvgDocument& svg) {
  results_->figures.push_back({{"file", file_name}, {"title", svg.title()}});
  write_file(folder_ + "/" + file_name, svg.to_string());
  print(fmt::format("  figure: {}/{}", folder_, file_name));
}

void Lesson::save() const {
  const nlohmann::ordered_json results = {{"tutorial", name_},
                                          {"backend", backend_},
                                          {"numbers", results_->numbers},
                                          {"figures", results_->figures}};
  write_file(folder_ + "/output.txt", results_->output);
  write_file(folder_ + "/results.json", results.dump(2) + "\n");
}

}  // namespace kitchen::tutorials
