#include "kitchen/analysis/machine.h"

#include <cblas.h>
#include <fmt/format.h>
#include <omp.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <thread>

namespace kitchen::analysis {

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

/// The text after the colon of the first line of `path` that begins with `key`; empty if there is
/// none.
std::string line_value(const char* path, const std::string& key) {
  std::ifstream in(path);
  std::string line;
  while (std::getline(in, line)) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const std::size_t start = line.find_first_not_of(" \t", line.find(':') + 1);
    return start == std::string::npos ? std::string() : line.substr(start);
  }
  return {};
}

std::string or_unknown(const std::string& text) {
  return text.empty() ? "unknown" : text;
}

Finding processor() {
  const std::string model = line_value("/proc/cpuinfo", "model name");
  return {"processor",
          fmt::format("{}, {} hardware threads", or_unknown(model),
                      std::thread::hardware_concurrency()),
          Health::good,
          {}};
}

Finding instructions() {
  const std::string flags = " " + line_value("/proc/cpuinfo", "flags") + " ";
  if (flags.size() < 3)
    return {
        "instructions", "unknown; the program was built for this architecture", Health::note, {}};
  std::string missing;
  for (const char* feature : {"avx2", "fma", "bmi2", "f16c", "movbe"}) {
    if (flags.find(fmt::format(" {} ", feature)) == std::string::npos)
      missing += std::string(" ") + feature;
  }
  if (missing.empty()) {
    const bool avx512 = flags.find(" avx512f ") != std::string::npos;
    return {"instructions",
            fmt::format("x86-64-v3 needed and present{}",
                        avx512 ? "; AVX-512 present, for OpenBLAS" : ""),
            Health::good,
            {}};
  }
  return {"instructions", "x86-64-v3 needed, missing:" + missing, Health::problem,
          "run on a processor with AVX2 and FMA (from about 2013 on)"};
}

Finding threads() {
  const int count = omp_get_max_threads();
  const unsigned cores = std::thread::hardware_concurrency();
  const char* limit = std::getenv("OMP_NUM_THREADS");
  const std::string source =
      limit == nullptr ? "all cores" : fmt::format("OMP_NUM_THREADS={}", limit);
  return {"threads",
          fmt::format("{} OpenMP threads ({}) on {} cores", count, source, cores),
          Health::good,
          {}};
}

Finding blas() {
  const char* config = openblas_get_config();
  const char* core = openblas_get_corename();
  const char* forced = std::getenv("OPENBLAS_CORETYPE");
  Finding finding{"BLAS",
                  fmt::format("kernels for {}; {}", core == nullptr ? "unknown" : core,
                              config == nullptr ? "unknown" : config),
                  Health::good,
                  {}};
  if (openblas_get_parallel() != 2) {
    finding.health = Health::note;
    finding.advice =
        "OpenBLAS was not built with OpenMP, so its threads and ours compete;\ninstall "
        "libopenblas-openmp-dev";
  } else if (forced != nullptr) {
    finding.health = Health::note;
    finding.advice = fmt::format(
        "OPENBLAS_CORETYPE={} is set; without it OpenBLAS chooses for this processor,\nwhich may "
        "be faster",
        forced);
  }
  return finding;
}

/// A line of /proc/meminfo in bytes; negative if unknown.
double memory_bytes(const char* key) {
  const std::string text = line_value("/proc/meminfo", key);
  return text.empty() ? -1.0 : std::strtod(text.c_str(), nullptr) * 1024.0;
}

Finding memory() {
  const double total = memory_bytes("MemTotal");
  const double available = memory_bytes("MemAvailable");
  if (total < 0 || available < 0) return {"memory", "unknown", Health::note, {}};
  const bool little = available < 0.5 * kGiB;
  return {"memory", fmt::format("{:.1f} of {:.1f} GiB free", available / kGiB, total / kGiB),
          little ? Health::problem : Health::good,
          little ? "the default model needs about 0.3 GiB; close other programs" : ""};
}

/// `path`, or the nearest folder above it that exists.
std::filesystem::path existing_folder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::absolute(path.empty() ? "." : path, ignored);
  while (!folder.empty() && !std::filesystem::is_directory(folder, ignored) &&
         folder != folder.parent_path()) {
    folder = folder.parent_path();
  }
  return folder;
}

Finding disk(const std::string& run_dir) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(existing_folder(run_dir), error);
  if (error) return {"disk", "unknown: " + error.message(), Health::note, {}};
  const double free = static_cast<double>(space.available) / kGiB;
  const bool little = free < 0.2;
  return {"disk", fmt::format("{:.1f} GiB free for runs", free),
          little ? Health::problem : Health::good,
          little
              ? "checkpoints need 16 bytes a parameter; free some space or give another --run-dir"
              : ""};
}

Finding run_folder(const std::string& run_dir) {
  const std::filesystem::path folder = existing_folder(run_dir);
  std::string probe = (folder / ".kitchen-doctor-XXXXXX").string();
  const int descriptor = ::mkstemp(probe.data());
  if (descriptor < 0) {
    return {"run folder", folder.string() + " cannot be written", Health::problem,
            "give a --run-dir in a folder that you may write to"};
  }
  ::close(descriptor);
  ::unlink(probe.c_str());
  return {"run folder", folder.string() + " can be written", Health::good, {}};
}

Finding data(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > 0)
    return {"data", fmt::format("{}: {} bytes", path, size), Health::good, {}};
  return {"data", path + (error ? " is not there" : " is empty"), Health::note,
          "tools/quickstart writes data/kjv.txt, from the packages bible-kjv and\n"
          "bible-kjv-text; or give any text of a few hundred kilobytes by --data"};
}

/// What this version does not bring, said plainly so that nobody looks for a driver problem.
std::vector<Finding> not_in_this_build() {
  return {{"NCCL", "not in this build", Health::note, {}},
          {"MPI", "not in this build: one process, one rank", Health::note, {}}};
}

const char* text_of(Health health) {
  switch (health) {
    case Health::good:
      return "ok";
    case Health::note:
      return "note";
    case Health::problem:
      return "PROBLEM";
  }
  return "";
}

template <class Probe>
Finding guarded(const char* topic, Probe probe) {
  try {
    return probe();
  } catch (const std::exception& error) {
    return {topic, std::string("unknown: ") + error.what(), Health::note, {}};
  }
}

}  // namespace

std::vector<Finding> examine_machine(const MachineQuestions& questions) {
  std::vector<Finding> findings{
      guarded("processor", processor),
      guarded("instructions", instructions),
      guarded("threads", threads),
      guarded("BLAS", blas),
      guarded("memory", memory),
      guarded("disk", [&] { return disk(questions.run_dir); }),
      guarded("run folder", [&] { return run_folder(questions.run_dir); }),
      guarded("data", [&] { return data(questions.data_path); }),
  };
  for (Finding& finding : not_in_this_build()) findings.push_back(std::move(finding));
  return findings;
}

std::string to_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<13} {:<8} {}\n", finding.topic, text_of(finding.health), finding.found);
    std::string advice = finding.advice;
    for (std::size_t i = advice.find('\n'); i != std::string::npos; i = advice.find('\n', i + 1)) {
      advice.insert(i + 1, std::string(23, ' '));
    }
    if (!advice.empty()) text += std::string(23, ' ') + advice + "\n";
  }
  return text;
}

std::string to_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json root;
  root["findings"] = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    std::string advice = finding.advice;
    std::replace(advice.begin(), advice.end(), '\n', ' ');
    root["findings"].push_back({{"topic", finding.topic},
                                {"found", finding.found},
                                {"health", text_of(finding.health)},
                                {"advice", advice}});
  }
  root["problems"] = std::count_if(findings.begin(), findings.end(),
                                   [](const Finding& f) { return f.health == Health::problem; });
  return root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace kitchen::analysis
