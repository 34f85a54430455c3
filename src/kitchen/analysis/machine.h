#pragma once

#include <string>
#include <vector>

namespace kitchen::analysis {

/// How a finding bears on training here.
enum class Health { good, note, problem };

/// One thing that `doctor` looked at.
struct Finding {
  std::string topic;  ///< "memory"
  std::string found;  ///< "21.4 of 23.6 GiB free"
  Health health = Health::good;
  std::string advice;  ///< way out; empty if all is good
};

/// What to look at.
struct MachineQuestions {
  std::string data_path = "data/kjv.txt";
  std::string run_dir = ".";  ///< folder that runs are written to, or would be
};

/// Looks at processor, threads, BLAS, memory, disk, devices, data and run folder. Throws nothing:
/// what cannot be found out is told as "unknown".
std::vector<Finding> examine_machine(const MachineQuestions& questions);

/// A line a finding, with its advice below it.
std::string to_text(const std::vector<Finding>& findings);
/// {"findings": [{"topic", "found", "health", "advice"}...], "problems": n}
std::string to_json(const std::vector<Finding>& findings);

}  // namespace kitchen::analysis
