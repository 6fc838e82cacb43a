// A worker that takes steps of its own: the local optimizer and what the worker keeps between
// clocks, which move together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/buffer.h"
#include "worker/compute/flat_vector.h"
#include "worker/exchange/exchange.h"
#include "worker/exchange/local_optimizer.h"
#include "worker/exchange/local_state.h"

namespace leeway {

// One exchange's. Not thread-safe.
class LocalTraining {
 public:
  // What the exchange keeps besides the optimizer's slots.
  struct Own {
    // As StateNames'.
    std::string exchange;
    std::vector<std::string> names{};
    // As many.
    std::vector<FlatVector> vectors{};
    // How many numbers.
    size_t counts = 0;
  };
  // RESOURCE_EXHAUSTED where the device has no room for the slots.
  static absl::StatusOr<LocalTraining> Make(const ExchangeContext& context,
                                            LocalOptimizer optimizer, Own own);

  // A step on the weights `local`; leaves its gradient in `gradient`. Both are the device's, and
  // stay there. Averaged elements, all of which are in `averages`, take its batch in. RunStep's
  // errors, and
  // OUT_OF_RANGE, naming worker, clock, step and tensor, where the optimizer has made something
  // that is not finite: slots that are stay so, unseen, and no state that holds them can be read.
  // In fp16 a step whose loss or gradient does not fit is left out, as if it had had no examples,
  // and the loss scale is halved, as far as that is above 1.
  absl::StatusOr<StepResult> Step(uint64_t clock, uint64_t step, std::span<float> local,
                                  std::span<float> gradient, std::span<const LocalAverage> averages,
                                  ClockReport& report);

  // Whether all numbers of a vector that is the device's, with memory of its own, are finite. False
  // where that is the host's, too: let the host look.
  absl::StatusOr<bool> KnownFinite(std::span<float> device);

  FlatVector& own(size_t index) { return state_.vectors[index]; }
  const FlatVector& own(size_t index) const { return state_.vectors[index]; }
  std::vector<uint64_t>& counts() { return state_.counts; }

  // All is as it is to be when `clock` begins: what Save() says from now on, whatever is done to
  // it in a clock that is broken off.
  void Keep(uint64_t clock);

  // What was kept, with the residual of compressed contributions. The device's error.
  absl::StatusOr<std::string> Save() const;
  // What of it this job keeps (TakeUpState, and its errors).
  absl::Status Load(const std::string& bytes);
  // The exchange's own vectors have been loaded.
  bool loaded() const { return loaded_; }

 private:
  // The exchange's vectors, then the slots, on the device.
  struct State {
    uint64_t updates = 0;
    std::vector<FlatVector> vectors;
    std::vector<uint64_t> counts;
    StepLossScale loss_scale = {};
  };
  LocalTraining(const ExchangeContext& context, LocalOptimizer optimizer, Own own);

  absl::StatusOr<FlatVector> MakeSlot(size_t slot) const;
  // In fp16: the step is to be left out. Moves the loss scale on.
  absl::StatusOr<bool> Overflowed(double loss_sum, std::span<float> gradient, ClockReport& report);
  // The loss and the gradient, on the device, are finite.
  absl::StatusOr<bool> Fits(double loss_sum, std::span<float> gradient);
  absl::StatusOr<bool> AllFinite(std::span<float> vector);
  // What the flag on the device says.
  absl::StatusOr<bool> IsFinite();
  // Queues the optimizer's step; whether all that it wrote is finite.
  absl::StatusOr<bool> Apply(VectorUpdate update);
  // Of what a step has written: which is not finite.
  absl::Status WhatIsNotFinite(std::span<const float> local, std::span<const float> gradient) const;
  absl::Status CheckVector(const char* what, std::span<const float> device) const;

  ExchangeContext context_;
  // Stays where it is: updates that are under way refer to it.
  std::unique_ptr<const LocalOptimizer> optimizer_;
  StateNames names_;
  // The job is fp16, and the loss scaled.
  bool scales_;
  size_t own_;
  // In use.
  State state_;
  // The state before clock `kept_clock_`, for the checkpoint. The residual of that moment is with
  // whoever encodes contributions.
  State kept_;
  uint64_t kept_clock_ = 0;
  // Its first element is of the check or update under way; as long as a page, to be pinned.
  FlatVector finite_;
  bool loaded_ = false;
};

}  // namespace leeway
