// A worker's exchange with the servers, clock after clock, as far as the clock loop uses it. The
// loop begins the exchange, gives it up and saves its state. It does not run the steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"

namespace leeway {

// The worker's steps that belong to one clock.
struct ClockSpan {
  uint64_t clock = 0;
  uint64_t first_step = 0;
  uint64_t steps = 0;
};

// The measurements of one exchange.
struct ExchangeReport {
  uint64_t clock = 0;
  // The largest staleness of all blocks.
  uint64_t staleness = 0;
  // The smallest version of all blocks in the answers. A version is the number of updates that were
  // applied to a block.
  uint64_t version = 0;
  // exchange_seconds is the time from sending the first block until the worker noticed the last
  // block's answer. wait_seconds is how long the worker waited during that time.
  double exchange_seconds = 0;
  double wait_seconds = 0;
  // The distance of the worker's weights from the mean of all workers' weights, if each worker has
  // weights of its own and the exchange has measured it.
  std::optional<double> mean_distance = std::nullopt;
};

// Hears when an exchange begins and when it ends. Exchanges never overlap, although the steps of a
// clock begin before the previous clock's exchange has ended. Called on the thread that runs the
// exchange.
class ExchangeListener {
 public:
  virtual ~ExchangeListener() = default;
  // Called when all exchanges before `clock` are complete, and nothing of the exchange of `clock`
  // has been sent. If this returns an error, the exchange does not begin, and its caller gets the
  // error.
  virtual absl::Status OnBegin(uint64_t clock) { return absl::OkStatus(); }
  // Called when every block has been answered.
  virtual void OnComplete(const ExchangeReport& report) {}
};

// Not thread-safe.
class ClockExchange {
 public:
  virtual ~ClockExchange() = default;

  // Prepares to run `clock`: reads the weights that a worker may see when it starts that clock, and
  // returns their version (as in ExchangeReport). To load a state, call LoadState first.
  virtual absl::StatusOr<uint64_t> Begin(uint64_t clock) = 0;

  // Waits until nothing is in progress. Returns false if the deadline came first. Returns the
  // client's errors. Call this before anything else that is not a step of a clock.
  virtual absl::StatusOr<bool> SettleUntil(Time deadline) { return true; }
  absl::Status Settle() { return SettleUntil(Time::max()).status(); }

  // Gives up the exchange in progress, so that Begin can prepare for another clock. Call it when a
  // step or Settle has returned ALREADY_EXISTS, because the clock was completed without this
  // worker. Returns false if this exchange cannot go on; make a new exchange then.
  virtual bool Abandon() { return false; }
  // Restores the residual as it was before the contribution of `clock`, which was abandoned here
  // and dropped by the servers. Call this before the next step.
  virtual void Drop(uint64_t clock) {}

  // Reads the current weights of the servers, without waiting for anybody. Only SaveState may be
  // called after it.
  virtual absl::Status ReadLatest() = 0;

  // Returns the state that the worker keeps between clocks, as bytes, or an empty string if it
  // keeps none. Returns an error if the device fails.
  virtual absl::StatusOr<std::string> SaveState() const { return std::string(); }
  // Returns true if the exchange can use a saved state of an earlier clock, because it is better
  // than no state.
  virtual bool TakesOlderState() const { return false; }
  // Loads those parts of the saved state that this job keeps, and logs a warning if other parts are
  // lost. Returns INVALID_ARGUMENT if the bytes are not a state of such a model.
  virtual absl::Status LoadState(const std::string& bytes) { return absl::OkStatus(); }
};

}  // namespace leeway
