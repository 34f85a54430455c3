/// @file  check_includes.cpp
/// @brief Reads every #include line of src/kitchen and cuda and fails on an arrow that is not in
/// rooms.h.
///
/// Usage: check_includes [root]     exit 0: clean, 1: violations (file:line: message), 2: wrong
/// usage

#include "rooms.h"
#include "source_tree.h"

#include <exception>
#include <iostream>
#include <optional>

namespace kitchen::tools {
namespace {

struct Include {
  std::string path;
  bool is_quoted = false;
  std::size_t line = 0;  // counted from 1
};

std::vector<Include> includes_of(const SourceFile& file) {
  std::vector<Include> includes;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string text = trimmed(file.lines[i]);
    if (!starts_with(text, "#include")) continue;
    const std::size_t open = text.find_first_of("\"<");
    if (open == std::string::npos) continue;
    const std::size_t close = text.find_first_of("\">", open + 1);
    includes.push_back({text.substr(open + 1, close - open - 1), text[open] == '"', i + 1});
  }
  return includes;
}

/// "src/kitchen/base/tensor.h" -> "base"; "cuda/..." -> "cuda"; "src/kitchen/kitchen.h" ->
/// "kitchen.h".
std::string room_of_file(const std::string& path) {
  if (starts_with(path, "cuda/")) return "cuda";
  const std::string rest = path.substr(std::string("src/kitchen/").size());
  return rest.substr(0, rest.find('/'));
}

std::string room_of_include(const std::string& path) {
  if (starts_with(path, "cuda/")) return "cuda";
  const std::string rest = path.substr(std::string("kitchen/").size());
  return rest.substr(0, rest.find('/'));
}

void check_arrow(const SourceFile& file, const Include& include, Findings& findings) {
  const std::string from = room_of_file(file.path);
  const bool is_ours = starts_with(include.path, "kitchen/") ||
                       (from == "cuda" && starts_with(include.path, "cuda/"));
  if (include.is_quoted && !is_ours) {
    findings.error(
        file.path, include.line,
        "\"" + include.path + "\" does not start with \"kitchen/\": the include root is src/");
    return;
  }
  if (!is_ours) return;
  if (!include.is_quoted) {
    findings.error(file.path, include.line, "<" + include.path + "> is ours: write it in quotes");
  }
  const std::string to = room_of_include(include.path);
  if (arrows().count(to) == 0) {
    findings.error(file.path, include.line, "unknown room '" + to + "'");
  } else if (reachable_rooms(from).count(to) == 0) {
    findings.error(file.path, include.line,
                   "room '" + from + "' may not include room '" + to + "' (" + include.path +
                       "): no such arrow in docs/explanation/layout.md");
  }
}

/// Headers of one device or transport stay in the few files that exist for it.
void check_device_headers(const SourceFile& file, const Include& include, Findings& findings) {
  const std::string& path = include.path;
  const bool is_in_cuda = starts_with(file.path, "cuda/");
  const bool is_nccl_file = file.path == "src/kitchen/parallel/nccl_communicator.cpp";
  const bool is_device_header = starts_with(path, "cuda_") || path == "cuda.h" ||
                                starts_with(path, "cublas") || starts_with(path, "cudnn") ||
                                starts_with(path, "nccl") || starts_with(path, "nvtx") ||
                                starts_with(path, "mma.h") || starts_with(path, "cuda/std");
  if (is_device_header && !include.is_quoted && !is_in_cuda && !is_nccl_file) {
    findings.error(file.path, include.line,
                   "<" + path + "> belongs under cuda/ or in parallel/nccl_communicator.cpp");
  }
  if (path == "mpi.h" && !starts_with(file.path, "src/kitchen/parallel/mpi_")) {
    findings.error(file.path, include.line, "<mpi.h> belongs in parallel/mpi_*");
  }
}

enum class Group { own, kitchen, third_party, standard };

const char* name_of(Group group) {
  switch (group) {
    case Group::own:
      return "own header";
    case Group::kitchen:
      return "kitchen/ headers";
    case Group::third_party:
      return "third party headers";
    case Group::standard:
      return "standard headers";
  }
  return "";
}

/// Nothing for headers of the operating system, which may stand with either of their neighbours.
std::optional<Group> group_of(const Include& include, const std::string& own) {
  if (include.is_quoted) return include.path == own ? Group::own : Group::kitchen;
  static const std::set<std::string> system = {
      "arpa/inet.h", "dirent.h", "dlfcn.h",  "execinfo.h",   "fcntl.h",
      "immintrin.h", "netdb.h",  "poll.h",   "netinet/in.h", "sched.h",
      "signal.h",    "spawn.h",  "unistd.h", "pthread.h",    "netinet/tcp.h"};
  if (system.count(include.path) != 0 || starts_with(include.path, "sys/")) return std::nullopt;
  const bool is_standard = include.path.find_first_of("./") == std::string::npos;
  return is_standard ? Group::standard : Group::third_party;
}

/// The header beside a source file: "src/kitchen/base/rng.cpp" -> "kitchen/base/rng.h", if it
/// exists.
std::string own_header(const SourceFile& file, const std::string& root) {
  const std::size_t dot = file.path.rfind('.');
  const std::string extension = file.path.substr(dot);
  if (extension != ".cpp" && extension != ".cu") return "";
  for (const char* candidate : {".h", ".cuh"}) {
    const std::string path = file.path.substr(0, dot) + candidate;
    if (exists(root, path)) return starts_with(path, "src/") ? path.substr(4) : path;
  }
  return "";
}

void check_order(const SourceFile& file, const std::vector<Include>& includes,
                 const std::string& own, Findings& findings) {
  if (!own.empty() && (includes.empty() || includes.front().path != own)) {
    findings.error(file.path, includes.empty() ? 1 : includes.front().line,
                   "the own header \"" + own + "\" must be the first include");
  }
  std::optional<Group> former;
  std::size_t former_line = 0;
  for (const Include& include : includes) {
    const std::optional<Group> group = group_of(include, own);
    if (!group) continue;
    if (former && *group < *former) {
      findings.error(file.path, include.line,
                     std::string(name_of(*group)) + " must stand before " + name_of(*former));
    } else if (former && *group > *former && include.line == former_line + 1) {
      findings.error(file.path, include.line,
                     std::string("a blank line must separate ") + name_of(*former) + " from " +
                         name_of(*group));
    }
    former = group;
    former_line = include.line;
  }
}

int run(const std::string& root) {
  Findings findings;
  std::vector<SourceFile> files = read_tree(root, "src/kitchen", {".h", ".cpp"});
  for (SourceFile& file : read_tree(root, "cuda", {".h", ".cpp", ".cu", ".cuh"})) {
    files.push_back(std::move(file));
  }
  if (files.empty())
    throw std::runtime_error(root + ": no src/kitchen here; name the root of the tree");
  for (const SourceFile& file : files) {
    if (arrows().count(room_of_file(file.path)) == 0) {
      findings.error(file.path, 1, "unknown room '" + room_of_file(file.path) + "'");
      continue;
    }
    const std::vector<Include> includes = includes_of(file);
    for (const Include& include : includes) {
      check_arrow(file, include, findings);
      check_device_headers(file, include, findings);
    }
    check_order(file, includes, own_header(file, root), findings);
  }
  return findings.report("check_includes", files.size());
}

}  // namespace
}  // namespace kitchen::tools

int main(int argc, char** argv) {
  if (argc > 2) {
    std::cerr << "usage: check_includes [root of the source tree]\n";
    return 2;
  }
  try {
    return kitchen::tools::run(argc == 2 ? argv[1] : ".");
  } catch (const std::exception& error) {
    std::cerr << "check_includes: " << error.what() << "\n";
    return 2;
  }
}
