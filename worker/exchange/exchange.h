// The first knob: what a worker sends to the servers, and how often. Each choice is one file
// (gradient.cc, delta.cc, elastic.cc); make.cc is the one place that lists them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/host_group.h"
#include "client/parameter_client.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/backend.h"
#include "worker/exchange/step_runner.h"

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
  // returns an error, the exchange does not begin, and Run returns the error.
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
  // Where the steps compute.
  Backend& backend;
  StepRunner& steps;
  ExchangeListener& listener;
  // The workers of this host that combine their contributions; null: this one hands in for itself.
  HostGroup* group = nullptr;
  // Elements of a whole vector that cross a device's bus at a time: enough for the bus's full rate,
  // and few beside a model that takes long to cross it.
  uint64_t bus_part = uint64_t{1} << 20;
  // Of a gradient exchange in fp16: what the rank's lives have reported of the loss scale, and how
  // to report more: OK when it is on record. Null: nobody need know.
  std::vector<v1::LossScale> loss_scales = {};
  std::function<absl::Status(const v1::LossScale&)> report_loss_scale = nullptr;
  std::function<Time()> now = [] { return std::chrono::steady_clock::now(); };
};

// The worker's steps that belong to one clock.
struct ClockSpan {
  uint64_t clock = 0;
  uint64_t first_step = 0;
  uint64_t steps = 0;
};

// What the steps of one clock have measured.
struct ClockReport {
  // Over all steps and examples.
  double loss_sum = 0;
  uint64_t examples = 0;
  double learning_rate = 0;
  // Steps that had a batch, or might have had one. Steps after the last batch of the clock do not
  // count.
  uint64_t steps = 0;
  bool none_left = false;
  // Which loss was not finite, if one was.
  std::string bad_loss;
  // The contribution was left out, or scaled (exchange.on_bad_gradient), and why.
  bool left_out = false;
  bool clipped = false;
  std::string why;
  // In fp16: steps that were left out because a gradient did not fit, and what the loss is
  // multiplied by from now on (0: not fp16). A gradient exchange has left out all of the clock.
  uint64_t overflowed_steps = 0;
  float loss_scale = 0;
  // As in StepResult.
  double data_seconds = 0;
  double compute_seconds = 0;
  double forward_seconds = 0;
  double backward_seconds = 0;
};

// The exchange of one worker. Not thread-safe.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Prepares to run `clock`: reads the weights as a worker that starts it may see them. Returns
  // their version (as in ExchangeReport). Call it after LoadState, if there is a state to load.
  virtual absl::StatusOr<uint64_t> Begin(uint64_t clock) = 0;

  // Computes the steps of one clock, waiting for the weights that they need, and hands the
  // contribution to the client. The exchange may still be in progress then. OUT_OF_RANGE, naming
  // worker, clock and tensor, for a loss or values that are not finite, unless the job leaves them
  // out. A bad block is not sent, but other blocks of the clock may have been. Other errors are
  // those of the listener, the client and the steps. After an error only SaveState and Abandon may
  // be called, and the state is that before the clock.
  virtual absl::StatusOr<ClockReport> Run(const ClockSpan& span) = 0;

  // Waits until nothing is in progress. Returns the client's errors. Call it before anything but
  // Run.
  virtual absl::Status Settle() { return absl::OkStatus(); }

  // Call it after ALREADY_EXISTS from Run or Settle: the clock was completed without this worker.
  // Gives up the exchange in progress; then Begin prepares for another clock. False if this
  // exchange cannot do that: make a new one.
  virtual bool Abandon() { return false; }
  // The abandoned contribution of `clock` was dropped, so what it had taken of the residual returns
  // to the residual. Call it before the next Run.
  virtual void Drop(uint64_t clock) {}

  // The weights of the servers, as last read. These are evaluated.
  virtual std::span<const float> weights() const = 0;
  // Reads the current weights of the servers, without waiting for anybody. Only SaveState may be
  // called after it.
  virtual absl::Status ReadLatest() = 0;

  // What the worker keeps between clocks, as bytes (local_state.h); empty if it keeps nothing. The
  // device's error.
  virtual absl::StatusOr<std::string> SaveState() const { return std::string(); }
  // Takes from the saved state what this job keeps, and warns of what is lost (state_fit.h).
  // INVALID_ARGUMENT if the bytes are not a state of such a model.
  virtual absl::Status LoadState(const std::string& bytes) { return absl::OkStatus(); }
};

absl::StatusOr<std::unique_ptr<Exchange>> MakeExchange(const ExchangeContext& context);

}  // namespace leeway
