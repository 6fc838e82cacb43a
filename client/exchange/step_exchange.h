// The exchange of a worker whose steps somebody else runs: another framework's loop, in another
// language. Like those of Leeway's own workers (worker/exchange), but the vectors are plain memory,
// the caller says what is final, and no wait is longer than it allows.
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
#include "client/exchange/clock_exchange.h"
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
  // The worker's weights, the whole vector. A gradient exchange's are the servers', and nobody else
  // writes there; in a delta or elastic exchange the worker trains them.
  std::span<float> weights;
};

// Functions with a deadline return false if it came first; then the same call goes on with what is
// under way. Their errors are the listener's and the client's, and OUT_OF_RANGE, naming the tensor,
// for values that are not finite. Not thread-safe.
class StepExchange : public ClockExchange {
 public:
  explicit StepExchange(const StepExchangeContext& context) : context_(context) {}

  // The whole vector, for the caller to fill while a clock runs; empty if the exchange makes it of
  // the weights. Averaged elements have the worker's own running values.
  virtual std::span<float> contribution() = 0;

  // A clock begins, at the weights that Begin or the clock before has left.
  virtual void StartClock(uint64_t clock) = 0;
  // Waits for the weights of these elements.
  virtual absl::StatusOr<bool> Wait(ElementRange elements, Time deadline) = 0;
  // Of how many examples this clock's contribution is made, for blocks that leave before End;
  // without it, of a batch.
  virtual void SetExamples(uint64_t examples) = 0;
  // What the learning rate is multiplied by in this clock's update. UNIMPLEMENTED once elements are
  // final, and where the servers have no rate of the worker's.
  virtual absl::Status SetRates(ContributionRates rates) {
    return absl::UnimplementedError(
        "in a delta or elastic exchange the learning rate is the worker's own");
  }
  // These elements of the contribution are final: blocks that are complete leave. INVALID_ARGUMENT
  // for elements that were final before; UNIMPLEMENTED if the exchange makes the contribution.
  virtual absl::Status Final(ElementRange elements) = 0;
  // The clock's steps are done: what is not final is so now. `examples` (0 is legal) is what counts
  // where no block has left before. Gradients need no answer to come; a
  // change of weights does, before the next step.
  virtual absl::StatusOr<bool> End(uint64_t examples, Time deadline) = 0;
  // Waits until nothing is in progress.
  virtual absl::StatusOr<bool> SettleUntil(Time deadline) = 0;
  // Between two clocks: reads what the next one begins with from the servers anew. After false the
  // same call again, with the same memory. UNIMPLEMENTED where the weights are the worker's own.
  virtual absl::StatusOr<bool> ReadAgain(std::span<float> into, Time deadline) {
    return absl::UnimplementedError("the weights of a delta or elastic exchange are the worker's");
  }
  // What became of the last clock's contribution (exchange.on_bad_gradient).
  virtual bool left_out() const { return false; }
  virtual bool clipped() const { return false; }

  absl::Status Settle() override { return SettleUntil(Time::max()).status(); }
  void Drop(uint64_t clock) override {
    if (context_.client.keeps_residual()) context_.client.UndoResidual(clock);
  }

  // The program's own part of the state that is saved next, and of the one that was loaded last;
  // the latter once.
  void Keep(std::string bytes) { kept_ = std::move(bytes); }
  std::optional<std::string> TakeLoaded() { return std::exchange(loaded_, std::nullopt); }
  // In the form of kept_state.h.
  absl::StatusOr<std::string> SaveState() const override;
  absl::Status LoadState(const std::string& bytes) override;

 protected:
  const StepExchangeContext& context() const { return context_; }
  // Whether the worker's weights are its own, and a part of its state.
  virtual bool keeps_weights() const { return false; }
  // A contribution that a residual does not know yet is on its way: it is of this clock.
  virtual uint64_t residual_clock() const { return std::numeric_limits<uint64_t>::max(); }
  // There was a state, and the weights are those of it: Begin leaves them.
  bool TakeLoadedWeights() { return std::exchange(loaded_weights_, false); }

 private:
  const StepExchangeContext context_;
  std::string kept_;
  std::optional<std::string> loaded_;
  bool loaded_weights_ = false;
};

// UNIMPLEMENTED for an exchange that only Leeway's own workers know.
absl::StatusOr<std::unique_ptr<StepExchange>> MakeStepExchange(const StepExchangeContext& context);

}  // namespace leeway
