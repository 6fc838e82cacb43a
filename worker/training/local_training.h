// The training of a worker that takes its own steps. Holds the local optimizer and the state that
// the worker keeps between clocks, because the two change together.
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
#include "exchange/kept_state.h"
#include "worker/compute/flat_vector.h"
#include "worker/training/clock_runner.h"
#include "worker/training/local_optimizer.h"

namespace leeway {

// Belongs to one exchange. Not thread-safe.
class LocalTraining {
 public:
  // What the exchange keeps in addition to the optimizer's slots.
  struct Own {
    // The name of the exchange, as in StateNames.
    std::string exchange;
    std::vector<std::string> names{};
    // One vector for each name.
    std::vector<FlatVector> vectors{};
    // The number of counts that the state has.
    size_t counts = 0;
  };
  // Returns RESOURCE_EXHAUSTED if the device lacks memory for the slots.
  static absl::StatusOr<LocalTraining> Make(const RunnerContext& context, LocalOptimizer optimizer,
                                            Own own);

  // Takes one step on the weights `local` and leaves its gradient in `gradient`. Both vectors are
  // on the device and stay there. The averaged elements absorb the batch's values; `averages` lists
  // all of these elements.
  //
  // Returns the errors of RunStep. Returns OUT_OF_RANGE, naming worker, clock, step and tensor, if
  // the optimizer has written a value that is not finite. Without this check a bad slot would stay
  // bad unnoticed, and a state with a bad value could not be loaded. In fp16 a step whose loss or
  // gradient does not fit is left out, as if it had no examples. The loss scale is then halved,
  // unless it is 1.
  absl::StatusOr<StepResult> Step(uint64_t clock, uint64_t step, std::span<float> local,
                                  std::span<float> gradient, std::span<const LocalAverage> averages,
                                  ClockReport& report);

  // Returns true if `device` is in a device's own memory and all its values are finite. Returns
  // false if host and device share the memory; the host must then check.
  absl::StatusOr<bool> KnownFinite(std::span<float> device);

  FlatVector& own(size_t index) { return state_.vectors[index]; }
  const FlatVector& own(size_t index) const { return state_.vectors[index]; }
  std::vector<uint64_t>& counts() { return state_.counts; }

  // Keeps the current state, the state before `clock`, for Save(). Later changes do not affect the
  // kept state, even if the clock is interrupted.
  void Keep(uint64_t clock);

  // Returns the kept state, with the residual of compressed contributions, or the device's error.
  absl::StatusOr<std::string> Save() const;
  // Loads from the bytes everything that this job keeps. Returns the errors of TakeUpState.
  absl::Status Load(const std::string& bytes);
  // Returns true if the exchange's own vectors have been loaded.
  bool loaded() const { return loaded_; }

 private:
  // The exchange's vectors and then the slots, all on the device.
  struct State {
    uint64_t updates = 0;
    std::vector<FlatVector> vectors;
    std::vector<uint64_t> counts;
    StepLossScale loss_scale = {};
  };
  LocalTraining(const RunnerContext& context, LocalOptimizer optimizer, Own own);

  absl::StatusOr<FlatVector> MakeSlot(size_t slot) const;
  // For fp16: updates the loss scale, and returns true if the step must be left out.
  absl::StatusOr<bool> Overflowed(double loss_sum, std::span<float> gradient, ClockReport& report);
  // Returns true if the loss and the gradient, which is on the device, are finite.
  absl::StatusOr<bool> Fits(double loss_sum, std::span<float> gradient);
  absl::StatusOr<bool> AllFinite(std::span<float> vector);
  // Reads the flag `finite_` on the device.
  absl::StatusOr<bool> IsFinite();
  // Runs the optimizer's step. Returns true if all values that it wrote are finite.
  absl::StatusOr<bool> Apply(VectorUpdate update);
  // Returns an error that names the first value that is not finite among those that a step has
  // written.
  absl::Status WhatIsNotFinite(std::span<const float> local, std::span<const float> gradient) const;
  absl::Status CheckVector(const char* what, std::span<const float> device) const;

  RunnerContext context_;
  // The optimizer is on the heap so that its address stays the same, because updates under way
  // refer to it.
  std::unique_ptr<const LocalOptimizer> optimizer_;
  StateNames names_;
  // True if the job is fp16, so that the loss is scaled.
  bool scales_;
  size_t own_;
  // The state in use.
  State state_;
  // The state before clock `kept_clock_`, for the checkpoint. The encoder of the contributions
  // keeps the residual of that moment.
  State kept_;
  uint64_t kept_clock_ = 0;
  // The first element is the flag of the check or update under way. The vector is one page long, so
  // that it can be pinned.
  FlatVector finite_;
  bool loaded_ = false;
};

}  // namespace leeway
