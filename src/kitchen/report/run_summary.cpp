#include "kitchen/report/run_summary.h"

#include "kitchen/base/error.h"
#include "kitchen/report/json_fields.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace kitchen::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // A folder opens as a file does but gives nothing; an empty file sets failbit on `text`, which is
  // no error.
  if (file.is_open() && !fs::is_directory(path)) text << file.rdbuf();
  if (!file.is_open() || file.bad() || fs::is_directory(path)) {
    throw IOError(path.string() + ": cannot be read; check that it is a file and its permissions");
  }
  return text.str();
}

/// Text of an optional file; what was read is added to `run.files`.
std::optional<std::string> read_if_present(const fs::path& folder, const char* name,
                                           RunSummary& run) {
  if (!fs::exists(folder / name)) return std::nullopt;
  std::string text = read_text(folder / name);
  run.files.push_back({name, text.size()});
  return text;
}

std::string read_required(const fs::path& folder, const char* name, RunSummary& run) {
  std::optional<std::string> text = read_if_present(folder, name, run);
  if (!text) {
    throw IOError(fmt::format("{}: not found; a run folder has metrics.jsonl and config.json",
                              (folder / name).string()));
  }
  return *std::move(text);
}

json parse_json(const std::string& text, const std::string& place) {
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    throw ValueError(fmt::format("{}: malformed JSON: {}", place, error.what()));
  }
}

MetricPoint parse_metric(const json& value, const std::string& place) {
  const JsonFields fields(value, place);
  return {fields.count("step"),
          fields.number_or_null("tokens"),
          fields.number_or_null("train_loss"),
          fields.number_or_null("val_loss"),
          fields.number_or_null("lr"),
          fields.number_or_null("grad_norm"),
          fields.number_or_null("tokens_per_s")};
}

/// Orders points by step and keeps the last logged one of each step.
void keep_last_of_each_step(RunSummary& run) {
  std::vector<MetricPoint>& points = run.metrics;
  std::stable_sort(points.begin(), points.end(),
                   [](const MetricPoint& a, const MetricPoint& b) { return a.step < b.step; });
  std::vector<MetricPoint> kept;
  for (const MetricPoint& point : points) {
    if (!kept.empty() && kept.back().step == point.step) kept.pop_back();
    kept.push_back(point);
  }
  if (kept.size() < points.size()) {
    const std::size_t repeated = points.size() - kept.size();
    run.notes.push_back(fmt::format(
        "{} logged more than once, as a resumed run does; the last value of each counts.",
        repeated == 1 ? "1 step was" : fmt::format("{} steps were", repeated)));
  }
  points = std::move(kept);
}

void parse_metrics(const std::string& text, const std::string& file, RunSummary& run) {
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const bool is_torn = end == text.size() && !json::accept(line);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (is_torn) {
      run.notes.push_back(fmt::format(
          "metrics.jsonl ends in a torn line ({}), as a crash leaves one; it is left out.",
          number));
      break;
    }
    const std::string place = fmt::format("{}:{}", file, number);
    run.metrics.push_back(parse_metric(parse_json(line, place), place));
  }
  keep_last_of_each_step(run);
}

void flatten(const json& value, const std::string& path, RunSummary& run) {
  if (value.is_object() && !(value.empty() && !path.empty())) {
    for (const auto& [key, child] : value.items())
      flatten(child, path.empty() ? key : path + '.' + key, run);
    return;
  }
  run.settings.emplace_back(path, value.is_string()
                                      ? value.get<std::string>()
                                      : value.dump(-1, ' ', false, json::error_handler_t::replace));
}

void parse_quantization(const json& list, const std::string& file, RunSummary& run) {
  if (!list.is_array())
    throw ValueError(fmt::format("{}: found {}, expected a JSON list", file, list.type_name()));
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonFields fields(list[i], fmt::format("{}: entry {}", file, i));
    QuantizationError error{
        fields.text("module"),        fields.text("operand"),           fields.text("gemm"),
        fields.text("scheme"),        fields.number_or_null("sqnr_db"), fields.number("saturated"),
        fields.number("underflowed"), fields.count("non_finite"),       fields.count("elements")};
    if (error.sqnr_db && *error.sqnr_db != *error.sqnr_db) error.sqnr_db.reset();
    run.quantization.push_back(std::move(error));
  }
}

void parse_op_times(const json& object, const std::string& file, RunSummary& run) {
  if (!object.is_object())
    throw ValueError(fmt::format("{}: found {}, expected a JSON object", file, object.type_name()));
  for (const auto& [op, value] : object.items()) {
    const JsonFields fields(value, fmt::format("{}: \"{}\"", file, op));
    run.op_times.push_back({op, fields.count("calls"), fields.number("seconds")});
  }
}

}  // namespace

std::string RunSummary::recipe() const {
  for (const char* wanted : {"recipe", "kitchen_config_file", "kitchen_recipe_number",
                             "kitchen_recipe_name"}) {
    for (const auto& [path, value] : settings) {
      std::string leaf = path.substr(path.rfind('.') + 1);
      std::replace(leaf.begin(), leaf.end(), '-', '_');
      if (leaf == wanted && !value.empty() && value != "null") return value;
    }
  }
  return "–";
}

const MetricPoint* RunSummary::final_validation() const {
  const auto last = std::find_if(metrics.rbegin(), metrics.rend(),
                                 [](const MetricPoint& p) { return p.val_loss.has_value(); });
  return last == metrics.rend() ? nullptr : &*last;
}

RunSummary read_run(const std::string& folder) {
  const fs::path path = fs::path(folder).lexically_normal();
  if (!fs::is_directory(path)) {
    throw IOError(fmt::format(
        "{}: no such run folder; give the folder whose path `kitchen train` printed", folder));
  }
  RunSummary run;
  const fs::path named = path.has_filename() ? path : path.parent_path();
  run.name = named.filename().string();
  if (run.name == "." || run.name == ".." || run.name.empty())
    run.name = fs::canonical(path).filename().string();
  const auto file = [&](const char* name) { return (path / name).string(); };

  parse_metrics(read_required(path, "metrics.jsonl", run), file("metrics.jsonl"), run);
  const json config = parse_json(read_required(path, "config.json", run), file("config.json"));
  if (!config.is_object()) {
    throw ValueError(fmt::format("{}: found {}, expected a JSON object", file("config.json"),
                                 config.type_name()));
  }
  flatten(config, "", run);
  std::sort(run.settings.begin(), run.settings.end());
  if (const auto text = read_if_present(path, "quantization.json", run)) {
    parse_quantization(parse_json(*text, file("quantization.json")), file("quantization.json"),
                       run);
  }
  if (const auto text = read_if_present(path, "op_times.json", run)) {
    parse_op_times(parse_json(*text, file("op_times.json")), file("op_times.json"), run);
  }
  if (auto text = read_if_present(path, "samples.txt", run)) run.samples = *std::move(text);
  return run;
}

}  // namespace kitchen::report
