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
#include "client/calls/host_group.h"
#include "client/calls/parameter_client.h"
#include "client/exchange/clock_exchange.h"
#include "client/exchange/clock_span.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/backend.h"
#include "worker/exchange/step_runner.h"

namespace leeway {

class DeviceEncoder;

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
  // Encodes contributions on the backend; null: the client does, or nobody. MakeExchange makes it.
  std::shared_ptr<DeviceEncoder> encoder = nullptr;
  // Elements of a whole vector that cross a device's bus at a time: enough for the bus's full rate,
  // and few beside a model that takes long to cross it.
  uint64_t bus_part = uint64_t{1} << 20;
  // Of a gradient exchange in fp16: what the rank's lives have reported of the loss scale, and how
  // to report more: OK when it is on record. Null: nobody need know.
  std::vector<v1::LossScale> loss_scales = {};
  std::function<absl::Status(const v1::LossScale&)> report_loss_scale = nullptr;
  std::function<Time()> now = [] { return std::chrono::steady_clock::now(); };
};

// What the steps of one clock have measured.
struct ClockReport {
  // Over all steps and examples.
  double loss_sum = 0;
  uint64_t examples = 0;
  // As in StepResult.
  uint64_t replaced = 0;
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

// The exchange of one worker that computes its steps by itself. What it keeps between clocks has
// the form of local_state.h, and LoadState takes it up as state_fit.h says.
class Exchange : public ClockExchange {
 public:
  // Computes the steps of one clock, waiting for the weights that they need, and hands the
  // contribution to the client. The exchange may still be in progress then. OUT_OF_RANGE, naming
  // worker, clock and tensor, for a loss or values that are not finite, unless the job leaves them
  // out. A bad block is not sent, but other blocks of the clock may have been. Other errors are
  // those of the listener, the client and the steps. After an error only SaveState and Abandon may
  // be called, and the state is that before the clock.
  virtual absl::StatusOr<ClockReport> Run(const ClockSpan& span) = 0;

  // The weights of the servers, as last read. These are evaluated.
  virtual std::span<const float> weights() const = 0;
};

absl::StatusOr<std::unique_ptr<Exchange>> MakeExchange(const ExchangeContext& context);

}  // namespace leeway
