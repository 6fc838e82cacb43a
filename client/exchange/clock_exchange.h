// A worker's exchange with the servers, clock after clock, as the participant sees it: it begins
// the exchange, gives it up and keeps its state, and does not run its steps.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leeway {

// What one exchange has measured.
struct ExchangeReport {
  uint64_t clock = 0;
  // The largest staleness of all blocks.
  uint64_t staleness = 0;
  // The smallest number of contributions that were applied to any block, as its answer said.
  uint64_t version = 0;
  // The time from the first block's departure to the last block's answer, as far as the worker has
  // noticed it, and the part of it that the worker waited.
  double exchange_seconds = 0;
  double wait_seconds = 0;
};

// Hears where one exchange ends and the next begins. Exchanges never overlap, although the steps of
// a clock begin before the previous clock's exchange has ended. Called on the thread that runs the
// exchange.
class ExchangeListener {
 public:
  virtual ~ExchangeListener() = default;
  // All exchanges before `clock` are complete, and nothing of this one has been sent. If this
  // returns an error, the exchange does not begin, and its caller gets the error.
  virtual absl::Status OnBegin(uint64_t clock) { return absl::OkStatus(); }
  // Every block has been answered.
  virtual void OnComplete(const ExchangeReport& report) {}
};

// Not thread-safe.
class ClockExchange {
 public:
  virtual ~ClockExchange() = default;

  // Prepares to run `clock`: reads the weights as a worker that starts it may see them. Returns
  // their version (as in ExchangeReport). Call it after LoadState, if there is a state to load.
  virtual absl::StatusOr<uint64_t> Begin(uint64_t clock) = 0;

  // Waits until nothing is in progress. Returns the client's errors. Call it before anything but
  // a clock's steps.
  virtual absl::Status Settle() { return absl::OkStatus(); }

  // Call it after ALREADY_EXISTS from a step or Settle: the clock was completed without this
  // worker. Gives up the exchange in progress; then Begin prepares for another clock. False if this
  // exchange cannot do that: make a new one.
  virtual bool Abandon() { return false; }
  // The abandoned contribution of `clock` was dropped, so the residual gets back what the
  // contribution took of it. Call this before the next step.
  virtual void Drop(uint64_t clock) {}

  // Reads the current weights of the servers, without waiting for anybody. Only SaveState may be
  // called after it.
  virtual absl::Status ReadLatest() = 0;

  // What the worker keeps between clocks, as bytes; empty if it keeps nothing. The device's error.
  virtual absl::StatusOr<std::string> SaveState() const { return std::string(); }
  // True if a state of an earlier clock is better than none.
  virtual bool TakesOlderState() const { return false; }
  // Takes from the saved state what this job keeps, and warns of what is lost. INVALID_ARGUMENT if
  // the bytes are not a state of such a model.
  virtual absl::Status LoadState(const std::string& bytes) { return absl::OkStatus(); }
};

}  // namespace leeway
