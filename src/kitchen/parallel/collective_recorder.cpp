#include "kitchen/parallel/collective_recorder.h"

#include "kitchen/base/rank_state.h"

#include <utility>

namespace kitchen {

namespace {

struct Installed {
  CollectiveRecorder* recorder = nullptr;
  bool in_backward = false;
};

Installed& installed() {
  return current_rank_state().slot<Installed>();
}

}  // namespace

std::string to_string(const CollectiveRecord& record) {
  return std::string(record.in_backward ? "backward " : "forward ") + record.op + " " +
         record.group;
}

CollectiveRecorder::CollectiveRecorder() : former_(std::exchange(installed().recorder, this)) {}

CollectiveRecorder::~CollectiveRecorder() {
  installed().recorder = former_;
}

std::vector<std::string> CollectiveRecorder::lines() const {
  std::vector<std::string> all;
  for (const CollectiveRecord& record : records_) all.push_back(to_string(record));
  return all;
}

void CollectiveRecorder::note(CollectiveRecord record) {
  const Installed& state = installed();
  if (state.recorder == nullptr) return;
  record.in_backward = state.in_backward;
  state.recorder->records_.push_back(std::move(record));
}

BackwardScope::BackwardScope() : former_(std::exchange(installed().in_backward, true)) {}

BackwardScope::~BackwardScope() {
  installed().in_backward = former_;
}

}  // namespace kitchen
