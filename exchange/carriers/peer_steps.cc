#include "exchange/carriers/peer_steps.h"

#include <algorithm>
#include <utility>

#include "client/calls/block_range.h"
#include "common/status.h"

namespace leeway {

void PeerSteps::Begin(uint64_t clock) {
  under_way_ = true;
  report_ = {.clock = clock, .version = clock + 1};
  MutexLock lock(mutex_);
  states_.assign(layout_.blocks(), State::kIdle);
  answered_ = 0;
  handed_in_ = false;
  began_ = ended_ = now_();
  waited_ = Duration::zero();
}

void PeerSteps::Start(uint32_t block) {
  const Time now = now_();
  MutexLock lock(mutex_);
  if (!std::exchange(handed_in_, true)) began_ = now;
  states_[block] = State::kUnderWay;
}

void PeerSteps::CallBegins() {
  MutexLock lock(mutex_);
  ++calls_;
}

void PeerSteps::CallIsOver() {
  MutexLock lock(mutex_);
  if (--calls_ == 0) changed_.NotifyAll();
}

void PeerSteps::Done(uint32_t block) {
  const Time now = now_();
  MutexLock lock(mutex_);
  states_[block] = State::kAnswered;
  if (++answered_ == states_.size()) ended_ = now;
  changed_.NotifyAll();
}

void PeerSteps::Fail(const absl::Status& status) {
  MutexLock lock(mutex_);
  if (status_.ok()) status_ = status;
  changed_.NotifyAll();
}

absl::Status PeerSteps::status() const {
  MutexLock lock(mutex_);
  return status_;
}

bool PeerSteps::AnyUnderWay(std::span<const ElementRange> elements) const {
  for (const ElementRange& range : elements) {
    const BlockRange blocks = BlocksOf(layout_, range);
    const State* const first = states_.data() + blocks.first;
    const State* const end = first + blocks.count;
    if (std::find(first, end, State::kUnderWay) != end) return true;
  }
  return false;
}

absl::StatusOr<bool> PeerSteps::Await(std::span<const ElementRange> elements, Time deadline) {
  if (!under_way_) return true;
  const Time began = now_();
  MutexLock lock(mutex_);
  bool late = false;
  while (!late && status_.ok() && AnyUnderWay(elements)) {
    if (deadline == Time::max()) {
      changed_.Wait(mutex_);
    } else {
      late = !changed_.WaitUntil(mutex_, deadline) && AnyUnderWay(elements);
    }
  }
  // If the last answer has come, the wait ended at that moment.
  const Time ended = answered_ == states_.size() ? ended_ : now_();
  waited_ += std::max(ended - began, Duration::zero());
  RETURN_IF_ERROR(status_);
  return !late;
}

absl::StatusOr<bool> PeerSteps::AwaitAll(Time deadline) {
  return Await(std::vector<ElementRange>{{0, layout_.total()}}, deadline);
}

bool PeerSteps::Abandon(PeerCalls& peers) {
  under_way_ = false;
  {
    MutexLock lock(mutex_);
    if (calls_ == 0) return true;
  }
  peers.Cancel();
  MutexLock lock(mutex_);
  while (calls_ > 0) changed_.Wait(mutex_);
  return false;
}

ExchangeReport PeerSteps::End() {
  under_way_ = false;
  MutexLock lock(mutex_);
  report_.exchange_seconds = Seconds(ended_ - began_);
  report_.wait_seconds = Seconds(waited_);
  return report_;
}

}  // namespace leeway
