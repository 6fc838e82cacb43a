// A worker that takes steps of its own: the local optimizer and what the worker keeps between
// clocks, which move together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/buffer.h"
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
    std::vector<FloatBuffer> vectors{};
    // How many numbers.
    size_t counts = 0;
  };
  LocalTraining(const ExchangeContext& context, LocalOptimizer optimizer, Own own);

  // A step on the weights `local`; leaves its gradient in `gradient`. Averaged elements, all of
  // which are in `averages`, take its batch in. RunStep's errors, and
  // OUT_OF_RANGE, naming worker, clock, step and tensor, where the optimizer has made something
  // that is not finite: slots that are stay so, unseen, and no state that holds them can be read.
  absl::StatusOr<StepResult> Step(uint64_t clock, uint64_t step, std::span<float> local,
                                  std::span<float> gradient, std::span<const LocalAverage> averages,
                                  ClockReport& report);

  std::span<float> own(size_t index) { return state_.vectors[index].span(); }
  std::span<const float> own(size_t index) const { return state_.vectors[index].span(); }
  std::vector<uint64_t>& counts() { return state_.counts; }

  // All is as it is to be when `clock` begins: what Save() says from now on, whatever is done to
  // it in a clock that is broken off.
  void Keep(uint64_t clock);

  // What was kept, with the residual of compressed contributions.
  std::string Save() const { return SerializeState(saved_); }
  // What of it this job keeps (TakeUpState, and its errors).
  absl::Status Load(const std::string& bytes);
  // The exchange's own vectors have been loaded.
  bool loaded() const { return loaded_; }

 private:
  // Before the optimizer's first step.
  void StartSlots(LocalState& state) const;
  // Of what a step has written: which is not finite.
  absl::Status NotFinite(std::span<const float> local, std::span<const float> gradient) const;

  const ExchangeContext context_;
  const LocalOptimizer optimizer_;
  const size_t own_;
  // The exchange's vectors, then the slots: in use.
  LocalState state_;
  // As they were when the last clock was complete, and behind them the residual.
  LocalState saved_;
  bool loaded_ = false;
};

}  // namespace leeway
