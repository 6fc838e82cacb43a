// The first knob: what a worker sends to the servers, and how often. One file a choice
// (gradient.cc, delta.cc, elastic.cc); make.cc is the one place that lists them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "worker/client/parameter_client.h"
#include "worker/exchange/step_runner.h"

namespace leeway {

// What one exchange has seen.
struct ExchangeReport {
  uint64_t clock = 0;
  // Largest over the blocks.
  uint64_t staleness = 0;
  // Contributions applied to the block that has least of them, as it was answered.
  uint64_t version = 0;
  // From the first block's departure to the last one's answer, as far as the worker has noticed it,
  // and what of it the worker stood still.
  double exchange_seconds = 0;
  double wait_seconds = 0;
};

// Told where one exchange ends and the next begins: they never overlap, though the steps of a clock
// begin before the last clock's exchange has ended. Called on the thread that runs the exchange.
class ExchangeListener {
 public:
  virtual ~ExchangeListener() = default;
  // All exchanges before `clock` are complete, and nothing of this one has been sent. An error
  // keeps it from beginning: Run returns it.
  virtual absl::Status OnBegin(uint64_t clock) { return absl::OkStatus(); }
  // Every block has been answered.
  virtual void OnComplete(const ExchangeReport& report) {}
};

// What an exchange works with. References outlive it.
struct ExchangeContext {
  const v1::TrainingJob& job;
  const v1::ModelSchema& schema;
  const v1::JobLength& length;
  uint32_t rank = 0;
  ParameterClient& client;
  StepRunner& steps;
  ExchangeListener& listener;
  std::function<Time()> now = [] { return std::chrono::steady_clock::now(); };
};

// One clock's share of the worker's steps.
struct ClockSpan {
  uint64_t clock = 0;
  uint64_t first_step = 0;
  uint64_t steps = 0;
};

// What the steps of one clock have seen.
struct ClockReport {
  // Over all steps and examples.
  double loss_sum = 0;
  uint64_t examples = 0;
  double learning_rate = 0;
  // That had a batch, or might have had one: none of those after there was none left for the clock.
  uint64_t steps = 0;
  bool none_left = false;
  // A loss was not finite: which.
  std::string bad_loss;
  // The contribution was left out, or scaled (exchange.on_bad_gradient), and why.
  bool left_out = false;
  bool clipped = false;
  std::string why;
  // As StepResult's.
  double data_seconds = 0;
  double compute_seconds = 0;
  double forward_seconds = 0;
  double backward_seconds = 0;
};

// One worker's. Not thread-safe.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Makes ready to run `clock`: reads the weights as a worker starting it may see them; their
  // version (as ExchangeReport's). After LoadState, if there is a state to load.
  virtual absl::StatusOr<uint64_t> Begin(uint64_t clock) = 0;

  // Computes the steps of one clock, waiting for the weights that they need, and hands its
  // contribution to the client; its exchange may still be under way then. OUT_OF_RANGE for a loss
  // or values that are not finite, unless the job leaves them out, naming worker, clock and tensor:
  // a bad block is not sent, though others of the clock may have been. Otherwise the listener's
  // errors, the client's and the steps'. After an error only SaveState and Abandon may be called:
  // the state is that before the clock.
  virtual absl::StatusOr<ClockReport> Run(const ClockSpan& span) = 0;

  // Waits until nothing is under way. The client's errors. Before anything but Run is called.
  virtual absl::Status Settle() { return absl::OkStatus(); }

  // After ALREADY_EXISTS from Run or Settle: the clock was completed without this worker. Gives up
  // the exchange under way; then Begin makes ready for another clock. False: this exchange cannot,
  // and is to be made anew.
  virtual bool Abandon() { return false; }
  // The abandoned contribution of `clock` was dropped: what it took with it of former ones comes
  // back. Before the next Run.
  virtual void Drop(uint64_t clock) {}

  // What the servers hold, as last read: what is evaluated.
  virtual std::span<const float> weights() const = 0;
  // Reads it anew, as it is now, without waiting for anybody. Nothing may run after it but
  // SaveState.
  virtual absl::Status ReadLatest() = 0;

  // What the worker keeps between clocks, as bytes (local_state.h); empty where it keeps nothing.
  virtual std::string SaveState() const { return ""; }
  // Takes up of it what this job keeps, and warns of what is lost (state_fit.h). INVALID_ARGUMENT
  // if the bytes are not a state of such a model.
  virtual absl::Status LoadState(const std::string& bytes) { return absl::OkStatus(); }
};

absl::StatusOr<std::unique_ptr<Exchange>> MakeExchange(const ExchangeContext& context);

}  // namespace leeway
