// Takes a worker through its clocks. Every program that computes uses this one class. The program
// contains the `while` statement, and ClockLoop says what comes next:
//
//   Participant::Open, then make the loop, and the exchange with the loop as its listener
//   Attach                       the exchange has begun at clock()
//   while Begin returns kClock or kMoved:
//     kClock: ...the steps of NextSpan(), and their exchange...
//             End                or BreakOff, with the error of a step or the exchange
//   Participant::ReportDone, SaveState
//
// Begin does what lies between two clocks. It asks the stop gate, waits for a leased batch, saves
// the worker's state at each cut, and reads the final weights. If the other workers have gone on
// without this one, it joins them again. Long work goes on in the background while Begin returns
// kNotYet. If the caller sets no deadline, Begin does that work on the caller's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/participant/clock_exchange.h"
#include "client/participant/clock_reports.h"
#include "client/participant/participant.h"
#include "client/participant/slow_call.h"
#include "client/participant/state_saver.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Returns the model's first weights. Called if this worker must send them to the servers.
using InitialWeights = std::function<absl::StatusOr<FloatBuffer>()>;

// Returns true if the worker must register again, because the others went on without it or the job
// has gone back.
inline bool IsMoved(const absl::Status& status) {
  return absl::IsAlreadyExists(status) || absl::IsFailedPrecondition(status);
}

// Serves one registration. The participant and the exchange outlive the loop. Not thread-safe.
class ClockLoop : public ExchangeListener {
 public:
  // kMoved: the worker has attached, or has joined the others again, and goes on at clock(). Call
  // Begin again.
  enum class Next { kClock, kMoved, kFinished, kStopped, kNotYet };

  // The participant is open. An `idle` worker has no data, and makes no exchange.
  explicit ClockLoop(Participant& participant, bool idle = false);

  // Starts the heartbeats, asks the servers at which clock the worker goes on, and begins the
  // exchange at that clock. If the servers have no weights and this worker must supply them, sends
  // the first weights. In a resumed job, loads the worker's state. If the worker was stopped
  // meanwhile, Begin returns kStopped.
  absl::Status Attach(ClockExchange& exchange, const InitialWeights& initial);
  // Goes on to the next clock, and returns kNotYet if the deadline came first. Returns
  // FAILED_PRECONDITION or ALREADY_EXISTS if the worker must register again. Any other error is
  // final.
  absl::StatusOr<Next> Begin(Time deadline);
  // Waits for the work that Begin has left in the background. Returns false if the deadline came
  // first.
  absl::StatusOr<bool> AwaitBackground(Time deadline);
  // Takes an error of the clock's steps, of its exchange, or of work between two clocks. Returns OK
  // if the error came because other workers or a stop have ended the clock: the clock then does not
  // count, and Begin finds out where the worker goes on. Returns any other error, which is final.
  absl::Status BreakOff(const absl::Status& status);
  bool broken_off() const { return !detour_.ok(); }
  // Ends clock(), whose steps are computed. The loop sends the metrics when the clock's exchange is
  // complete. A clock that is broken off does not count.
  void End(v1::StepMetrics metrics);

  // Returns the steps of the next clock.
  ClockSpan NextSpan() const;
  // clock() is the number of clocks whose steps are computed; the last clock's exchange may still
  // be in progress. completed() is the number of completed exchanges.
  uint64_t clock() const { return clock_; }
  uint64_t completed() const { return reports_.completed(); }
  double Epoch() const;
  // Returns true if this worker has made all of its exchanges. In async mode, returns true if all
  // workers together have made all exchanges or, with leased batches, if Begin has found that all
  // batches are done.
  bool MadeAll() const;

  // Makes the worker keep state even if its exchange keeps none. For external jobs.
  void KeepState() { state_.Want(); }
  // Returns true if the state at clock() goes into a checkpoint, so that it must be up to date.
  bool IsStateDue() const;
  // SaveAtCut saves the state if a cut is due, and SaveState saves the last state. Begin calls
  // SaveAtCut; a caller with other work before Begin may call it earlier. The caller itself calls
  // SaveState.
  absl::Status SaveAtCut();
  absl::Status SaveState() { return state_.Save(completed(), *exchange_); }

  // Asks the gate about the exchange of `clock`. Returns CANCELLED if the exchange must not begin.
  absl::Status OnBegin(uint64_t clock) override;
  void OnComplete(const ExchangeReport& report) override;

 private:
  absl::Status AttachAndBegin(const InitialWeights& initial);
  absl::Status BeginAt(const ParameterClient::Attachment& attachment);
  // Asks the servers where to go on, and begins there. Repeats this if the other workers overtake
  // this one meanwhile.
  absl::StatusOr<ParameterClient::Attachment> Join();
  // Goes on at the newest clock, because a clock was completed without this worker.
  absl::Status Rejoin(const absl::Status& why);
  // Makes one attempt of Begin. Returns nothing if Begin must try again.
  absl::StatusOr<std::optional<Next>> TryBegin(Time deadline);
  // Begins to recover from detour_.
  std::optional<Next> Recover(Time deadline);
  absl::Status SaveAndAsk(bool asks);
  bool IsOpen() const { return participant_.gate().IsOpen(clock_); }
  // Returns true if the job's length is a number of batches, which all workers lease.
  bool LastsForBatches() const;
  // HasBatch returns false if the job lasts until its leased batches are done and no batch is in
  // stock. AwaitBatch then waits until there is a batch or all batches are done.
  bool HasBatch() const;
  absl::StatusOr<bool> AwaitBatch(Time deadline);
  // Returns true if the current clock may be the last one and only its exchange's answer can tell.
  bool NearlyMadeAll() const;
  // Calls LeasedBatches::Settle if data is leased.
  void Settled(uint64_t clock, bool dropped) const;
  const v1::JobLength& length() const { return participant_.registration().length(); }

  Participant& participant_;
  const bool idle_;
  ClockExchange* exchange_ = nullptr;
  StateSaver state_;
  ClockReports reports_;
  uint64_t clock_ = 0;
  bool leases_over_ = false;
  // True if all clocks are done and the final weights are read.
  bool finished_ = false;
  // True if Begin has yet to return kMoved for a change of clock().
  bool moved_ = false;
  // detour_ is the reason why the current clock does not count. failed_ is the reason why the
  // worker cannot go on.
  absl::Status detour_, failed_;
  // While this call is pending, its thread uses all the members above.
  SlowCall slow_;
};

}  // namespace leeway
