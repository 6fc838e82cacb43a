// Decides what a worker sends in each clock, and how often: the first of the three knobs. The
// caller computes the steps and drives the exchange with them. Leeway's own worker is one caller
// (worker/training). Other programs call it through the library (library/job.h). A carrier says
// with whom a worker exchanges.
//
// Each kind of exchange is one file. Only make.cc lists them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/participant/clock_exchange.h"
#include "common/blocks.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/update/rule.h"
#include "exchange/carriers/carrier.h"
#include "exchange/kept_state.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// References outlive the exchange.
struct ExchangeContext {
  const v1::TrainingJob& job;
  const v1::ModelSchema& schema;
  const v1::JobLength& length;
  Carrier& carrier;
  ExchangeListener& listener;
  // The worker's weights, the whole vector. In a gradient exchange they hold the others' weights,
  // and only the exchange writes to them. In a delta or elastic exchange the worker trains them.
  std::span<float> weights;
  // True if another program computes, not Leeway's own worker. In its contributions the averaged
  // elements hold running values, as in other frameworks, and not the means of the clock's batches
  // (common/update/averaging.h). Its state also has bytes of the program.
  bool program = false;
  // True if the caller may leave a clock out (LeaveOut). No block then leaves before End.
  bool may_leave_out = false;
};

// Functions with a deadline return false if the deadline came first; call them again in the same
// way to go on. Functions return the errors of the listener and the carrier, and OUT_OF_RANGE,
// naming the tensor, for values that are not finite. Not thread-safe.
class Exchange : public ClockExchange {
 public:
  explicit Exchange(const ExchangeContext& context) : context_(context) {}

  // The whole contribution vector, which the caller fills while a clock runs. In averaged elements
  // the caller writes the worker's own values. Empty if the exchange makes the contribution from
  // the weights.
  virtual std::span<float> contribution() = 0;

  // Begins a clock, with the weights that Begin or the previous clock has left.
  virtual void StartClock(uint64_t clock) = 0;
  // Waits for the weights of these elements.
  virtual absl::StatusOr<bool> Wait(std::span<const ElementRange> elements, Time deadline) = 0;
  // Sets the number of this clock's examples, for blocks that are sent before End. Without this
  // call, those blocks count as made of one batch's examples. A call after the clock's first block
  // has no effect, because all blocks of a clock have one weight.
  virtual void SetExamples(uint64_t examples) = 0;
  // Sets the factors of the learning rate in this clock's update. Returns UNIMPLEMENTED if some
  // elements are already final, or if the servers do not use a worker's rates.
  virtual absl::Status SetRates(ContributionRates rates) {
    return absl::UnimplementedError(
        "in a delta or elastic exchange the servers take no learning rates: the worker applies its "
        "own");
  }
  // Completes the previous exchange, and begins the exchange of this clock. Without this call,
  // sending the clock's first block does so.
  virtual absl::StatusOr<bool> Open(Time deadline) { return true; }
  virtual bool open() const { return false; }
  // Declares that these elements of the contribution are final, and sends the blocks that are
  // complete now. If `known_finite` is true, the caller has checked them. Returns INVALID_ARGUMENT
  // for elements that were already final. Returns UNIMPLEMENTED if the exchange makes the
  // contribution.
  virtual absl::Status Final(std::span<const ElementRange> elements, bool known_finite) = 0;
  // Leaves the clock's contribution out of the update, for this reason. Call it before End, and
  // only with ExchangeContext::may_leave_out or if the job leaves bad gradients out.
  virtual void LeaveOut(std::string why) {}
  // Ends the clock, and declares its remaining elements final. If no block was sent before,
  // `examples` (0 is legal) is the weight of the contribution. A gradient exchange does not wait
  // for answers. An exchange of weights waits for them before the next step.
  virtual absl::StatusOr<bool> End(uint64_t examples, Time deadline) = 0;
  // Reads again the weights with which the next clock begins. Call this between two clocks. If it
  // returns false, call it again with the same memory. Returns UNIMPLEMENTED if the weights are the
  // worker's own.
  virtual absl::StatusOr<bool> ReadAgain(std::span<float> into, Time deadline) {
    return absl::UnimplementedError(
        "in a delta or elastic exchange the weights are the worker's own and cannot be read again "
        "from the servers");
  }
  // What happened to the last clock's contribution: it was left out, clipped
  // (exchange.on_bad_gradient) or neither, and the reason.
  virtual bool left_out() const { return false; }
  virtual bool clipped() const { return false; }
  virtual std::string why() const { return ""; }

  bool Abandon() override { return context_.carrier.Abandon(); }
  void Drop(uint64_t clock) override {
    if (context_.carrier.keeps_residual()) context_.carrier.encoder()->Undo(clock);
  }

  // Keep sets the program's part of the state that is saved next. TakeLoaded returns, once, the
  // program's part of the state that was loaded last.
  void Keep(std::string bytes) { kept_ = std::move(bytes); }
  std::optional<std::string> TakeLoaded() { return std::exchange(loaded_, std::nullopt); }
  // The state has the form of kept_state.h. It is empty if there is nothing to keep.
  absl::StatusOr<std::string> SaveState() const override;
  absl::Status LoadState(const std::string& bytes) override;

 protected:
  const ExchangeContext& context() const { return context_; }
  Carrier& carrier() const { return context_.carrier; }
  // Returns true if the worker's weights are its own, and part of its state.
  virtual bool keeps_weights() const { return false; }
  // Makes the present state the one that is saved: the state before `clock`. Changes by later
  // contributions and steps, even of a clock that is broken off, are not part of it. Call this in
  // Begin, and when an exchange is over, once the weights are those of the next clock.
  void StateIsBefore(uint64_t clock);
  // Returns true, once, if the weights come from a loaded state. Begin then keeps those weights.
  bool TakeLoadedWeights() { return std::exchange(loaded_weights_, false); }

 private:
  // Returns a state of zeros, with room for what this exchange keeps.
  KeptState EmptyState() const;

  const ExchangeContext context_;
  // The weights before state_clock_, if they are part of the state.
  FloatBuffer kept_weights_;
  std::string kept_;
  std::optional<std::string> loaded_;
  bool loaded_weights_ = false;
  uint64_t state_clock_ = 0;
};

// Returns UNIMPLEMENTED for an exchange that only Leeway's own workers know.
absl::StatusOr<std::unique_ptr<Exchange>> MakeExchange(const ExchangeContext& context);
// The kinds of exchange, for make.cc. One sends mean gradients; the other one exchanges weights
// that the worker trains by itself.
std::unique_ptr<Exchange> MakeGradientExchange(const ExchangeContext& context);
std::unique_ptr<Exchange> MakeWeightExchange(const ExchangeContext& context);

}  // namespace leeway
