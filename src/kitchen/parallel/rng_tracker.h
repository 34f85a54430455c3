#pragma once

#include "kitchen/base/rng.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace kitchen {

/// A generator's state: the k-th draw since seeding uses Philox stream k of the seed. Drawing is a function
/// of this pair alone, so saving it is enough to resume.
struct GeneratorState {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;

  friend bool operator==(const GeneratorState& a, const GeneratorState& b) {
    return a.seed == b.seed && a.offset == b.offset;
  }
};

/// The default generator of this rank: what dropout draws from outside of a fork.
GeneratorState& default_generator();

/// The Rng of the next draw from the default generator; advances it.
Rng next_rng();

/// Named generator states, so that replicated and split regions of a model draw equal or different numbers on
/// the ranks of a tensor-parallel group. Kept under Megatron's names.
class RngTracker {
 public:
  /// Puts the named state in place of the default one for its lifetime, and saves its advance at the end.
  class Fork {
   public:
    Fork(RngTracker& tracker, std::string name);
    ~Fork();
    Fork(const Fork&) = delete;
    Fork& operator=(const Fork&) = delete;

   private:
    RngTracker& tracker_;
    std::string name_;
    GeneratorState outer_;
  };

  [[nodiscard]] bool is_initialized() const { return !states_.empty(); }
  void reset() { states_.clear(); }
  /// @throws RuntimeError if the name or the seed exists already.
  void add(const std::string& name, std::uint64_t seed);
  /// @throws RuntimeError "is not added" for an unknown name. Forks nest.
  [[nodiscard]] Fork fork(const std::string& name = "model-parallel-rng");
  [[nodiscard]] const std::map<std::string, GeneratorState>& get_states() const { return states_; }
  void set_states(std::map<std::string, GeneratorState> states) { states_ = std::move(states); }

 private:
  std::map<std::string, GeneratorState> states_;
};

/// The tracker of this rank. Megatron's name is kept although the same generator drives the CPU.
RngTracker& get_cuda_rng_tracker();

/// "expert-parallel-rng" and "data-parallel-rng".
std::string get_expert_parallel_rng_tracker_name();
std::string get_data_parallel_rng_tracker_name();

/// Seeds the default generator and the tracker's states as Megatron does:
/// default and data-parallel: seed; model-parallel: seed + 2718 + tp_rank; expert-parallel:
/// seed + 1024 + 100·ep_rank + etp_rank. A rank that is not given is this one's in its default group.
/// Also sets the run seed that init methods use, and restarts the counter of created layers: models
/// that are built alike after equal seeds get equal weights.
void model_parallel_cuda_manual_seed(std::uint64_t seed, std::optional<int> tp_rank = {},
                                     std::optional<int> ep_rank = {},
                                     std::optional<int> etp_rank = {});

/// The seed of the run as given to model_parallel_cuda_manual_seed; 0 before.
std::uint64_t run_seed();

}  // namespace kitchen
