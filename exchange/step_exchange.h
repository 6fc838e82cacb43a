// The exchange of a worker whose steps another program runs, perhaps with another framework and in
// another language. It works like the exchanges of Leeway's own workers (worker/exchange), with
// three differences. The vectors are plain memory, the caller declares which elements are final,
// and no wait is longer than the caller allows.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/calls/parameter_client.h"
#include "client/participant/clock_exchange.h"
#include "common/blocks.h"
#include "common/clock.h"
#include "common/update/rule.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// References outlive the exchange.
struct StepExchangeContext {
  const v1::RegisterWorkerReply& registration;
  ParameterClient& client;
  ExchangeListener& listener;
  // The worker's weights, the whole vector. In a gradient exchange they hold the servers' weights,
  // and only the exchange writes to them. In a delta or elastic exchange the worker trains them.
  std::span<float> weights;
};

// Functions with a deadline return false if the deadline came first; the same call, made again,
// goes on with what is in progress. Functions return the errors of the listener and the client, and
// OUT_OF_RANGE, naming the tensor, for values that are not finite. Not thread-safe.
class StepExchange : public ClockExchange {
 public:
  explicit StepExchange(const StepExchangeContext& context) : context_(context) {}

  // The whole contribution vector, which the caller fills while a clock runs. Empty if the exchange
  // makes the contribution from the weights. Into averaged elements the caller writes the worker's
  // own running values.
  virtual std::span<float> contribution() = 0;

  // Begins a clock, with the weights that Begin or the previous clock has left.
  virtual void StartClock(uint64_t clock) = 0;
  // Waits for the weights of these elements.
  virtual absl::StatusOr<bool> Wait(ElementRange elements, Time deadline) = 0;
  // Sets the number of this clock's examples, for blocks that are sent before End. Without this
  // call, those blocks have the weight of one batch's examples.
  virtual void SetExamples(uint64_t examples) = 0;
  // Sets the factors of the learning rate in this clock's update. Returns UNIMPLEMENTED if some
  // elements are already final, or if the servers do not use a worker's rates.
  virtual absl::Status SetRates(ContributionRates rates) {
    return absl::UnimplementedError(
        "in a delta or elastic exchange the learning rate is the worker's own");
  }
  // Declares that these elements of the contribution are final, and sends the blocks that are
  // complete now. Returns INVALID_ARGUMENT for elements that were already final. Returns
  // UNIMPLEMENTED if the exchange makes the contribution.
  virtual absl::Status Final(ElementRange elements) = 0;
  // Ends the clock, whose remaining elements are final now. `examples` (0 is legal) counts if no
  // block was sent before. A gradient exchange does not wait for answers. An exchange of weights
  // waits for them before the next step.
  virtual absl::StatusOr<bool> End(uint64_t examples, Time deadline) = 0;
  // Waits until nothing is in progress.
  virtual absl::StatusOr<bool> SettleUntil(Time deadline) = 0;
  // Reads the weights with which the next clock begins from the servers again. Call it between two
  // clocks. After false, make the same call again, with the same memory. Returns UNIMPLEMENTED if
  // the weights are the worker's own.
  virtual absl::StatusOr<bool> ReadAgain(std::span<float> into, Time deadline) {
    return absl::UnimplementedError("the weights of a delta or elastic exchange are the worker's");
  }
  // Whether the last clock's contribution was left out or clipped (exchange.on_bad_gradient).
  virtual bool left_out() const { return false; }
  virtual bool clipped() const { return false; }

  absl::Status Settle() override { return SettleUntil(Time::max()).status(); }
  void Drop(uint64_t clock) override {
    if (context_.client.keeps_residual()) context_.client.UndoResidual(clock);
  }

  // Keep sets the program's part of the state that is saved next. TakeLoaded returns, once, the
  // program's part of the state that was loaded last.
  void Keep(std::string bytes) { kept_ = std::move(bytes); }
  std::optional<std::string> TakeLoaded() { return std::exchange(loaded_, std::nullopt); }
  // The state has the form of kept_state.h.
  absl::StatusOr<std::string> SaveState() const override;
  absl::Status LoadState(const std::string& bytes) override;

 protected:
  const StepExchangeContext& context() const { return context_; }
  // Returns true if the worker's weights are its own, and part of its state.
  virtual bool keeps_weights() const { return false; }
  // The clock of a contribution in progress that the residual does not include yet.
  virtual uint64_t residual_clock() const { return std::numeric_limits<uint64_t>::max(); }
  // Returns true, once, if the weights come from a loaded state. Begin then keeps those weights.
  bool TakeLoadedWeights() { return std::exchange(loaded_weights_, false); }

 private:
  const StepExchangeContext context_;
  std::string kept_;
  std::optional<std::string> loaded_;
  bool loaded_weights_ = false;
};

// Returns UNIMPLEMENTED for an exchange that only Leeway's own workers know.
absl::StatusOr<std::unique_ptr<StepExchange>> MakeStepExchange(const StepExchangeContext& context);

}  // namespace leeway
