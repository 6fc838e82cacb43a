// The progress of an exchange whose blocks advance in steps, on threads of the transport: each
// answer begins the block's next call. Carriers among workers use it to count what is under way and
// to wait for it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/calls/peer_calls.h"
#include "client/participant/clock_exchange.h"
#include "common/blocks.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace leeway {

// Any thread may call CallBegins, CallIsOver, Done and Fail and, while a call is in progress,
// clock(). Only the exchange's thread may call the rest.
class PeerSteps {
 public:
  // `layout` outlives the object.
  PeerSteps(const BlockLayout& layout, std::function<Time()> now)
      : layout_(layout), now_(std::move(now)) {}

  void Begin(uint64_t clock) EXCLUDES(mutex_);
  bool under_way() const { return under_way_; }
  uint64_t clock() const { return report_.clock; }
  // Adds a block that is handed in.
  void Start(uint32_t block) EXCLUDES(mutex_);

  // A call begins or is over. Report that a call is over only when the calls that follow from it
  // have begun.
  void CallBegins() EXCLUDES(mutex_);
  void CallIsOver() EXCLUDES(mutex_);
  // The block is answered.
  void Done(uint32_t block) EXCLUDES(mutex_);
  // The exchange cannot go on. Only the first error counts.
  void Fail(const absl::Status& status) EXCLUDES(mutex_);
  absl::Status status() const EXCLUDES(mutex_);

  // Both wait for blocks that were handed in. They return false if the deadline came first, and the
  // error of Fail.
  absl::StatusOr<bool> Await(std::span<const ElementRange> elements, Time deadline)
      EXCLUDES(mutex_);
  absl::StatusOr<bool> AwaitAll(Time deadline) EXCLUDES(mutex_);
  // Cancels the calls in progress, because the other workers may never publish what they wait for.
  // Waits until none is in progress, and gives the exchange up. Returns false if there was one: the
  // peers cannot be called any more.
  bool Abandon(PeerCalls& peers) EXCLUDES(mutex_);
  // Ends the exchange. All blocks are answered.
  ExchangeReport End() EXCLUDES(mutex_);

 private:
  enum class State : uint8_t { kIdle, kUnderWay, kAnswered };
  bool AnyUnderWay(std::span<const ElementRange> elements) const REQUIRES(mutex_);

  const BlockLayout& layout_;
  const std::function<Time()> now_;
  bool under_way_ = false;
  ExchangeReport report_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<State> states_ GUARDED_BY(mutex_);
  uint64_t answered_ GUARDED_BY(mutex_) = 0;
  uint64_t calls_ GUARDED_BY(mutex_) = 0;
  absl::Status status_ GUARDED_BY(mutex_);
  bool handed_in_ GUARDED_BY(mutex_) = false;
  Time began_ GUARDED_BY(mutex_), ended_ GUARDED_BY(mutex_);
  Duration waited_ GUARDED_BY(mutex_) = Duration::zero();
};

}  // namespace leeway
