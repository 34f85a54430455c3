#include "kitchen/base/rank_state.h"

#include <utility>

namespace kitchen {

namespace {

std::shared_ptr<RankState>& installed() {
  thread_local std::shared_ptr<RankState> state = std::make_shared<RankState>();
  return state;
}

}  // namespace

RankState::RankState(int rank, int world_size) : rank_(rank), world_size_(world_size) {}

void RankState::set_default_context(std::shared_ptr<Context> context) {
  default_context_ = std::move(context);
}

RankState& current_rank_state() { return *installed(); }

std::shared_ptr<RankState> current_rank_state_ptr() { return installed(); }

RankScope::RankScope(std::shared_ptr<RankState> state)
    : former_(std::exchange(installed(), std::move(state))) {}

RankScope::~RankScope() { installed() = std::move(former_); }

}  // namespace kitchen
