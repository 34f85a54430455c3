#pragma once

#include "kitchen/base/context.h"
#include "kitchen/parallel/communicator.h"
#include "kitchen/parallel/launch_environment.h"

#include <functional>

/// @file  mpi_communicator.h
/// @brief Ranks as MPI processes, in the library kitchen_mpi, which exists where CMake has found
/// MPI.

namespace kitchen::parallel {

struct MpiRankOptions {
  std::chrono::milliseconds deadline = kDefaultDeadline;  ///< of each collective
  ContextPtr context;                                     ///< the rank's default context
  LaunchEnvironment environment;                          ///< compared with MPI's world
};

/// Runs `body` as this process's rank of MPI's world: starts MPI, installs a RankState and the
/// world group, and ends MPI afterwards. Once a process.
///
/// Collectives do not block inside MPI: they poll against the deadline, since a dead peer may go
/// unnoticed. The ranks' calls are compared before data moves. A call that moves more than
/// 2147483647 bytes throws NotImplementedError.
/// @returns 0, or 2 if `environment` and MPI disagree. If `body` throws on one of several ranks,
/// the message is
///          printed to stderr with the rank's number and the whole job ends through MPI_Abort with
///          status 1; a single rank returns 1.
int run_mpi_rank(const std::function<void()>& body, const MpiRankOptions& options);

}  // namespace kitchen::parallel
