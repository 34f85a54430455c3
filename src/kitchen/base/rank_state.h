#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <typeindex>

namespace kitchen {

class Context;

/// All that belongs to one rank and that Megatron keeps global.
///
/// Ranks may be threads of one process, so nothing of this may be a process-wide global: the state hangs
/// on the thread through RankScope. Rooms above `base` keep their part (default groups, RNG tracker)
/// in a typed slot, so that `base` needs to know nothing of them.
class RankState {
 public:
  explicit RankState(int rank = 0, int world_size = 1);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int world_size() const { return world_size_; }

  /// Context that is used where no tensor tells one; the CPU until set_default_context is called.
  [[nodiscard]] std::shared_ptr<Context> default_context() const { return default_context_; }
  void set_default_context(std::shared_ptr<Context> context);

  /// Whether log lines of this rank are reported (on rank 0). A dry run beside the real one turns it off:
  /// the user would read each warning twice.
  [[nodiscard]] bool logs() const { return logs_; }
  void set_logs(bool logs) { logs_ = logs; }

  /// Counts created layers, rank-independently: the fallback name for weight initialisation.
  std::int64_t next_creation_index() { return creation_counter_++; }
  void restart_creation_index() { creation_counter_ = 0; }

  /// The state of type T of a room above; default-constructed at first use.
  template <class T>
  T& slot() {
    std::shared_ptr<void>& entry = slots_[std::type_index(typeid(T))];
    if (!entry) entry = std::make_shared<T>();
    return *static_cast<T*>(entry.get());
  }

 private:
  int rank_;
  int world_size_;
  bool logs_ = true;
  std::int64_t creation_counter_ = 0;
  std::shared_ptr<Context> default_context_;
  std::map<std::type_index, std::shared_ptr<void>> slots_;
};

/// The state installed on this thread, else this thread's own single-rank state.
RankState& current_rank_state();

/// Shared handle of the same; helper threads adopt it with a RankScope of their own.
std::shared_ptr<RankState> current_rank_state_ptr();

/// Installs a rank's state on the calling thread for the lifetime of the scope. Nests.
class RankScope {
 public:
  explicit RankScope(std::shared_ptr<RankState> state);
  ~RankScope();
  RankScope(const RankScope&) = delete;
  RankScope& operator=(const RankScope&) = delete;

 private:
  std::shared_ptr<RankState> former_;
};

}  // namespace kitchen
