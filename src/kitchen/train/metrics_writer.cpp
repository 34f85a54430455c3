#include "kitchen/train/metrics_writer.h"

#include "kitchen/base/error.h"
#include "kitchen/base/logger.h"
#include "kitchen/train/durable_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace kitchen::train {

namespace {

using Json = nlohmann::ordered_json;

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string number(double value) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

std::string text_of(const MetricValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return number(*real);
  if (const auto* json = std::get_if<JsonText>(&value)) return json->text;
  return quoted(std::get<std::string>(value));
}

/// The step of a line, or nothing if it is no JSON object with one.
std::optional<std::int64_t> step_of(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step")) return std::nullopt;
  const Json& step = json["step"];
  return step.is_number_integer() ? std::optional(step.get<std::int64_t>()) : std::nullopt;
}

/// The lines of `text` up to `step`, byte for byte.
std::string lines_up_to(const std::string& path, const std::string& text, std::int64_t step) {
  std::string kept;
  int line_number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    ++line_number;
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      logger().warning(
          fmt::format("{}:{}: the last line was cut; it is dropped", path, line_number));
      break;
    }
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const std::optional<std::int64_t> found = step_of(line);
    if (!found) {
      throw RuntimeError(
          fmt::format("{}:{}: found '{}', expected a JSON object with a whole number 'step'; "
                      "repair the line or "
                      "resume into another --run-dir",
                      path, line_number, line.substr(0, 60)));
    }
    if (*found <= step) kept.append(line).append("\n");
    begin = end + 1;
  }
  return kept;
}

void prepare_resume(const std::string& path, std::int64_t step) {
  if (!std::filesystem::exists(path)) {
    logger().warning(
        fmt::format("{}: missing on resume at step {}; a new file begins there", path, step));
    return;
  }
  const std::string text = read_file(path);
  const std::string kept = lines_up_to(path, text, step);
  if (kept.size() != text.size()) replace_file(path, kept);
}

}  // namespace

std::string to_json_line(const MetricsLine& line) {
  std::string text = fmt::format("{{\"step\":{}", line.step);
  for (const auto& [key, value] : line.values) text += "," + quoted(key) + ":" + text_of(value);
  for (const auto& [key, value] : line.times) text += "," + quoted(key) + ":" + number(value);
  return text + "}";
}

MetricsWriter::MetricsWriter(std::string path, std::optional<std::int64_t> resume_step)
    : path_(std::move(path)) {
  if (resume_step) {
    prepare_resume(path_, *resume_step);
  } else if (std::filesystem::exists(path_) && std::filesystem::file_size(path_) > 0) {
    throw ValueError(fmt::format(
        "{}: holds the metrics of another run; go on with --resume or take another --run-dir",
        path_));
  }
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    throw IOError(fmt::format("{}: cannot open for writing: {}", path_,
                              std::generic_category().message(errno)));
  }
}

MetricsWriter::~MetricsWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void MetricsWriter::write(const MetricsLine& line) {
  const std::string text = to_json_line(line) + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t put = ::write(descriptor_, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      throw RuntimeError(fmt::format("{}: writing the line of step {} failed: {}; make room", path_,
                                     line.step, std::generic_category().message(errno)));
    }
    done += static_cast<std::size_t>(put);
  }
}

void write_config_json(const std::string& path, const std::string& json_text) {
  std::string text;
  try {
    text = Json::parse(json_text).dump(2) + "\n";
  } catch (const Json::exception& error) {
    throw ValueError(fmt::format("{}: the configuration is no JSON text: {}", path, error.what()));
  }
  replace_file(path, text);
}

}  // namespace kitchen::train
