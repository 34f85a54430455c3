#include "common/compare_results.h"

#include "support/xml_checker.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace kitchen::tutorials {
namespace {

using Json = nlohmann::ordered_json;

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Json read_json(const std::string& path) {
  return Json::parse(read_text(path));
}

/// Not a number unless the value is one: JSON has no NaN and writes null for it.
double value_of(const Json& number) {
  const Json& value = number.at("value");
  return value.is_number() ? value.get<double>() : std::nan("");
}

void compare_number(const std::string& key, const Json& found, const Json& expected,
                    std::vector<std::string>& mistakes) {
  const double value = value_of(found);
  const double wanted = value_of(expected);
  const std::string kind = expected.at("kind").get<std::string>();
  const double tolerance =
      kind == "within" ? expected.at("relative").get<double>() * std::fabs(wanted) : 0.0;
  if (found.at("kind") != kind) {
    mistakes.push_back(fmt::format("{}: found kind {}, expected {}", key,
                                   found.at("kind").get<std::string>(), kind));
  }
  if (!(std::fabs(value - wanted) <= tolerance)) {
    mistakes.push_back(
        fmt::format("{}: found {}, expected {} within {}", key, value, wanted, tolerance));
  }
}

void compare_numbers(const Json& found, const Json& expected, std::vector<std::string>& mistakes) {
  for (const auto& [key, number] : found.items()) {
    const bool is_time = number.at("kind") == "machine";
    if (!std::isfinite(value_of(number))) mistakes.push_back(key + ": is not finite");
    if (!is_time && !expected.contains(key)) mistakes.push_back(key + ": is not expected");
  }
  for (const auto& [key, number] : expected.items()) {
    if (found.contains(key)) {
      compare_number(key, found.at(key), number, mistakes);
    } else {
      mistakes.push_back(key + ": is missing");
    }
  }
}

void check_figure(const std::string& folder, const std::string& file,
                  std::vector<std::string>& mistakes) {
  const testing::XmlChecker xml(read_text(folder + "/" + file));
  if (!xml.error().empty()) mistakes.push_back(file + ": " + xml.error());
  if (xml.count("svg") != 1 || xml.count("title") == 0) {
    mistakes.push_back(file + ": expected one svg element with a title");
  }
}

}  // namespace

std::vector<std::string> compare_results(const std::string& folder,
                                         const std::string& expected_path) {
  const Json found = read_json(folder + "/results.json");
  const Json expected = read_json(expected_path);
  std::vector<std::string> mistakes;
  compare_numbers(found.at("numbers"), expected.at("numbers"), mistakes);
  if (found.at("figures") != expected.at("figures")) {
    mistakes.push_back(fmt::format("figures: found {}, expected {}", found.at("figures").dump(),
                                   expected.at("figures").dump()));
  }
  for (const Json& figure : found.at("figures")) {
    check_figure(folder, figure.at("file").get<std::string>(), mistakes);
  }
  return mistakes;
}

void update_expected(const std::string& folder, const std::string& expected_path) {
  const Json results = read_json(folder + "/results.json");
  Json numbers = Json::object();
  for (const auto& [key, number] : results.at("numbers").items()) {
    if (number.at("kind") != "machine") numbers[key] = number;
  }
  const Json expected = {{"numbers", numbers}, {"figures", results.at("figures")}};
  std::ofstream file(expected_path, std::ios::binary);
  file << expected.dump(2) << '\n';
  if (!file.flush()) throw std::runtime_error(expected_path + ": cannot be written");
}

}  // namespace kitchen::tutorials
