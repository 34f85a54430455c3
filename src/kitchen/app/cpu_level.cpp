#include "kitchen/app/cpu_level.h"

#include <cstdio>
#include <cstring>

// This file is compiled for the oldest processors, and uses nothing of the C++ library: code that
// other files instantiate too might be taken from one that needs newer instructions.

namespace kitchen::app {

namespace {

/// The first line of /proc/cpuinfo that lists features, into `line`. False if there is none.
bool read_features(char* line, int size) {
  std::FILE* file = std::fopen("/proc/cpuinfo", "r");
  if (file == nullptr) return false;
  bool found = false;
  while (!found && std::fgets(line, size, file) != nullptr)
    found = std::strncmp(line, "flags", 5) == 0;
  std::fclose(file);
  return found;
}

}  // namespace

bool check_cpu_level() {
  static char line[16384];
  // Another system or architecture: nothing to compare with.
  if (!read_features(line, static_cast<int>(sizeof line))) return true;
  static const char* const needed[] = {" avx2", " fma", " bmi2", " f16c", " movbe"};
  for (const char* feature : needed) {
    if (std::strstr(line, feature) != nullptr) continue;
    std::fprintf(stderr,
                 "kitchen: this processor lacks%s; the program is built for x86-64-v3 (AVX2 and "
                 "FMA, from about\n"
                 "2013 on). Run it on a newer machine.\n",
                 feature);
    return false;
  }
  return true;
}

}  // namespace kitchen::app
