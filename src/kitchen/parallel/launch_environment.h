#pragma once

#include <functional>
#include <optional>
#include <string>

namespace kitchen::parallel {

/// What a launcher says about this process through RANK and WORLD_SIZE.
struct LaunchEnvironment {
  int rank = 0;
  int world_size = 1;
  bool is_set = false;  ///< false: neither variable exists, this is the only rank
};

/// Reads RANK and WORLD_SIZE. @param variable gives a variable's text, nullopt where it is not set.
/// @throws ValueError naming variable and value if only one is set, if a text is no number of its
/// range.
LaunchEnvironment read_launch_environment(
    const std::function<std::optional<std::string>(const std::string& name)>& variable);

/// @throws ValueError naming both if the variables are set and say another rank or world than MPI
/// does.
void require_same_world(const LaunchEnvironment& environment, int mpi_rank, int mpi_size);

}  // namespace kitchen::parallel
