#include "kitchen/parallel/rng_tracker.h"

#include "kitchen/base/error.h"
#include "kitchen/base/rank_state.h"
#include "kitchen/parallel/process_group_collection.h"

#include <utility>

namespace kitchen {

namespace {

/// All generator state of a rank, in its RankState.
struct Generators {
  GeneratorState current;
  RngTracker tracker;
  std::uint64_t run_seed = 0;
};

Generators& generators() { return current_rank_state().slot<Generators>(); }

}  // namespace

GeneratorState& default_generator() { return generators().current; }

Rng next_rng() {
  GeneratorState& state = default_generator();
  return Rng{state.seed, state.offset++};
}

RngTracker::Fork::Fork(RngTracker& tracker, std::string name)
    : tracker_(tracker), name_(std::move(name)), outer_(default_generator()) {
  const auto entry = tracker_.states_.find(name_);
  if (entry == tracker_.states_.end()) {
    throw RuntimeError("RngTracker: state '" + name_ +
                       "' is not added; call model_parallel_cuda_manual_seed first");
  }
  default_generator() = entry->second;
}

RngTracker::Fork::~Fork() {
  tracker_.states_[name_] = default_generator();
  default_generator() = outer_;
}

void RngTracker::add(const std::string& name, std::uint64_t seed) {
  if (states_.count(name) != 0) {
    throw RuntimeError("RngTracker: state '" + name + "' already exists");
  }
  for (const auto& [other, state] : states_) {
    if (state.seed == seed) {
      throw RuntimeError("RngTracker: seed " + std::to_string(seed) + " already exists, for '" +
                         other + "'");
    }
  }
  states_.emplace(name, GeneratorState{seed, 0});
}

RngTracker::Fork RngTracker::fork(const std::string& name) { return {*this, name}; }

RngTracker& get_cuda_rng_tracker() { return generators().tracker; }

std::string get_expert_parallel_rng_tracker_name() { return "expert-parallel-rng"; }

std::string get_data_parallel_rng_tracker_name() { return "data-parallel-rng"; }

void model_parallel_cuda_manual_seed(std::uint64_t seed, std::optional<int> tp_rank,
                                     std::optional<int> ep_rank, std::optional<int> etp_rank) {
  const auto groups = ProcessGroupCollection::use_mpu_process_groups();
  const auto own = [](std::optional<int> given, const ProcessGroup& group) {
    return static_cast<std::uint64_t>(given.value_or(group.rank()));
  };
  Generators& all = generators();
  // The counter names the parameters of layers without a path, and names choose weights.
  current_rank_state().restart_creation_index();
  all.run_seed = seed;
  all.current = {seed, 0};
  all.tracker.reset();
  all.tracker.add(get_data_parallel_rng_tracker_name(), seed);
  all.tracker.add("model-parallel-rng", seed + 2718 + own(tp_rank, *groups->tp));
  all.tracker.add(get_expert_parallel_rng_tracker_name(),
                  seed + 1024 + 100 * own(ep_rank, *groups->ep) +
                      own(etp_rank, *groups->expt_tp));
}

std::uint64_t run_seed() { return generators().run_seed; }

}  // namespace kitchen
