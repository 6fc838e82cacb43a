// The steps of Leeway's own worker, clock by clock, and how they drive its exchange.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/participant/clock_exchange.h"
#include "exchange/carriers/carrier.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/backend.h"
#include "worker/training/step_runner.h"

namespace leeway {

class DeviceEncoder;

// What a runner works with. The referenced objects must outlive the runner.
struct RunnerContext {
  const v1::TrainingJob& job;
  const v1::ModelSchema& schema;
  const v1::JobLength& length;
  uint32_t rank = 0;
  Carrier& carrier;
  // The backend that computes the steps.
  Backend& backend;
  StepRunner& steps;
  ExchangeListener& listener;
  // Encodes contributions on the backend. MakeClockRunner sets this field. If it is null, the
  // carrier encodes, or nothing is encoded.
  std::shared_ptr<DeviceEncoder> encoder = nullptr;
  // The number of elements that one copy moves across a device's bus. It is large enough to reach
  // the bus's full rate, and small compared with a model that takes long to cross the bus.
  uint64_t bus_part = uint64_t{1} << 20;
  // For a gradient exchange in fp16: the loss scales that earlier lives of this rank have reported,
  // and a function that reports a new scale. The function returns OK once the coordinator has
  // recorded the scale. If the function is null, no scale is reported.
  std::vector<v1::LossScale> loss_scales = {};
  std::function<absl::Status(const v1::LossScale&)> report_loss_scale = nullptr;
};

// What one worker has measured in the steps of one clock.
struct ClockReport {
  // The sum of the losses over all steps and examples of the clock.
  double loss_sum = 0;
  uint64_t examples = 0;
  // The number of examples that stand in for damaged pictures, as in StepResult.
  uint64_t replaced = 0;
  double learning_rate = 0;
  // The number of steps that had a batch or might have had one. Steps after the last batch of the
  // clock do not count.
  uint64_t steps = 0;
  bool none_left = false;
  // The description of a loss that was not finite. Empty if all losses were finite.
  std::string bad_loss;
  // What happened to the contribution: left out, scaled (exchange.on_bad_gradient) or neither, and
  // the reason.
  bool left_out = false;
  bool clipped = false;
  std::string why;
  // For fp16: the number of steps that were left out because a gradient overflowed, and the factor
  // on the loss from now on (0 if the job is not fp16). In a gradient exchange the whole clock is
  // left out.
  uint64_t overflowed_steps = 0;
  float loss_scale = 0;
  // The time spent on loading batches and on computing, as in StepResult.
  double data_seconds = 0;
  double compute_seconds = 0;
  double forward_seconds = 0;
  double backward_seconds = 0;
};

// Computes a clock's steps and drives the exchange with them. Each kind of runner is one file. Only
// make.cc lists them. Not thread-safe.
class ClockRunner {
 public:
  virtual ~ClockRunner() = default;

  // Returns the exchange that Run drives. The caller uses it between two clocks.
  virtual ClockExchange& exchange() = 0;

  // Computes the steps of one clock and hands the contribution to the carrier. Run waits for the
  // weights that the steps need. The exchange may still be in progress when Run returns.
  //
  // Returns OUT_OF_RANGE, naming worker, clock and tensor, if a loss or a value is not finite,
  // unless the job leaves such contributions out. A bad block is not sent, but other blocks of the
  // clock may have been sent. Also returns the errors of the listener, the carrier and the steps.
  // After an error only SaveState and Abandon may be called; SaveState then saves the state before
  // the clock.
  virtual absl::StatusOr<ClockReport> Run(const ClockSpan& span) = 0;

  // Returns the weights of the servers or the other workers, as last read. Evaluation uses them.
  virtual std::span<const float> weights() = 0;
};

absl::StatusOr<std::unique_ptr<ClockRunner>> MakeClockRunner(const RunnerContext& context);
// The kinds, for make.cc. The last two exchange weights: at the end of a clock, or spread over the
// clock.
absl::StatusOr<std::unique_ptr<ClockRunner>> MakeGradientRunner(const RunnerContext& context);
absl::StatusOr<std::unique_ptr<ClockRunner>> MakeWeightRunner(const RunnerContext& context);
absl::StatusOr<std::unique_ptr<ClockRunner>> MakeSpreadRunner(const RunnerContext& context);

}  // namespace leeway
