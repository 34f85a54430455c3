#include "kitchen/parallel/launch_environment.h"

#include "kitchen/base/error.h"

#include <charconv>

namespace kitchen::parallel {

namespace {

int number_in(const std::string& name, const std::string& text, int first, int limit,
              const std::string& range) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  if (status == std::errc() && stop == end && value >= first && value < limit) return value;
  throw ValueError(name + "=\"" + text + "\": a whole number " + range + " is wanted");
}

}  // namespace

LaunchEnvironment read_launch_environment(
    const std::function<std::optional<std::string>(const std::string& name)>& variable) {
  constexpr int kMaxRanks = 1 << 20;
  const std::optional<std::string> rank = variable("RANK");
  const std::optional<std::string> world = variable("WORLD_SIZE");
  if (!rank && !world) return {};
  if (!rank) {
    throw ValueError("WORLD_SIZE=\"" + *world +
                     "\" is set, but RANK is not; a launcher sets both, one "
                     "process sets neither");
  }
  if (!world) {
    throw ValueError("RANK=\"" + *rank +
                     "\" is set, but WORLD_SIZE is not; a launcher sets both, one "
                     "process sets neither");
  }
  LaunchEnvironment found;
  found.is_set = true;
  found.world_size = number_in("WORLD_SIZE", *world, 1, kMaxRanks, "of at least 1");
  found.rank = number_in("RANK", *rank, 0, found.world_size,
                         "from 0 to WORLD_SIZE - 1 = " + std::to_string(found.world_size - 1));
  return found;
}

void require_same_world(const LaunchEnvironment& environment, int mpi_rank, int mpi_size) {
  if (!environment.is_set) return;
  if (environment.world_size != mpi_size) {
    throw ValueError("WORLD_SIZE is " + std::to_string(environment.world_size) +
                     ", but MPI's world has " + std::to_string(mpi_size) +
                     " ranks; start the program with mpirun -n " +
                     std::to_string(environment.world_size) + ", or unset RANK and WORLD_SIZE");
  }
  if (environment.rank != mpi_rank) {
    throw ValueError("RANK is " + std::to_string(environment.rank) + ", but MPI says rank " +
                     std::to_string(mpi_rank) + "; unset RANK and WORLD_SIZE");
  }
}

}  // namespace kitchen::parallel
