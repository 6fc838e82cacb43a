// A worker's part in its job, without what it computes. The participant attaches to the servers,
// keeps the lease by heartbeats, and goes through the stop gate before each exchange. It joins
// again where the others have gone on without it. It keeps a stock of leased batches, hands in the
// worker's state at each cut, and reports what each clock has measured.
//
// The program that computes has the loop, and calls in this order:
//
//   Open, then make the exchange with client(), group() and the participant as its listener
//   Start
//   Attach                       the exchange has begun at clock()
//   for each clock:
//     AskWhereToStop, AwaitBatch, IsOpen
//     ...the steps of NextSpan(), and their exchange...
//     Advance                    or Rejoin, after ALREADY_EXISTS
//     SaveAtCut
//   ReportDone, SaveState
//
// The worker's trainer (worker/trainer.h) is one such loop; the library for other languages
// (client/library) has another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/calls/contribution_memory.h"
#include "client/calls/host_group.h"
#include "client/calls/parameter_client.h"
#include "client/exchange/clock_exchange.h"
#include "client/exchange/clock_span.h"
#include "client/participant/stop_gate.h"
#include "client/session/coordinator_session.h"
#include "client/session/leased_batches.h"
#include "client/transport/transport.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// References outlive the participant.
struct ParticipantContext {
  const v1::RegisterWorkerReply& registration;
  // A registered session whose heartbeats have not started yet.
  CoordinatorSession& session;
  // Null if the worker sends its own contribution (workers.per_host).
  ContributionMemory* contributions = nullptr;
  // Null for gRPC.
  TransportFactory transport = nullptr;
};

// Returns the model's first weights. It is called if this worker is to give them to the servers.
using InitialWeights = std::function<absl::StatusOr<FloatBuffer>()>;

// Serves one registration. Not thread-safe, except for what the heartbeats call.
class Participant : public ExchangeListener {
 public:
  explicit Participant(const ParticipantContext& context);
  // Ends the heartbeats, then the client. Until then calls of a failed exchange may still use the
  // exchange's vectors, so the exchange must outlive the participant.
  ~Participant() override;

  absl::Status Open();
  // Call after Open(). The group is null if the worker sends its own contribution.
  ParameterClient& client() { return *client_; }
  HostGroup* group() { return group_.get(); }
  // Null if the number of the step decides which batch is next.
  LeasedBatches* leases() const { return leases_.get(); }

  // Begins the heartbeats. The exchange outlives the participant.
  void Start(ClockExchange& exchange, InitialWeights initial);
  // Asks the servers where to go on, and begins the exchange there. If the servers have no weights
  // and this worker is to provide them, it gives them the first ones. In a resumed job it loads the
  // worker's state. CANCELLED if the worker was stopped before that.
  absl::Status Attach();
  // A clock was completed without this worker (`why` is ALREADY_EXISTS), so it goes on at the
  // newest clock. Returns `why` if the exchange cannot do that.
  absl::Status Rejoin(const absl::Status& why);

  // Runs `work`. False if it was CANCELLED because the worker is to stop in order. Returns the
  // errors of `work`, and the reason if the coordinator refuses the worker.
  absl::StatusOr<bool> UnlessStopped(const std::function<absl::Status()>& work);
  // True if a stop is wanted and AskWhereToStop has not asked yet.
  bool IsToAskWhereToStop() const;
  // If so, settles the exchange and asks at which clock to stop.
  absl::Status AskWhereToStop();
  // True if the exchange of clock() may begin.
  bool IsOpen() const { return gate_.IsOpen(clock_); }
  // The gate's answer for an exchange: CANCELLED if it must not begin.
  absl::Status OnBegin(uint64_t clock) override;
  void OnComplete(const ExchangeReport& report) override;

  // The steps of the next clock.
  ClockSpan NextSpan() const;
  // The steps of clock() are computed. Their metrics go out when the exchange of the clock is
  // complete.
  void Advance(v1::StepMetrics metrics);
  // clock(): the number of clocks whose steps are computed. The exchange of the last one may still
  // be in progress. completed(): the number of completed exchanges.
  uint64_t clock() const { return clock_; }
  uint64_t completed() const { return completed_; }
  // A stop has broken off the last exchange, so its clock's steps count for nothing.
  void TakeBackClock() { clock_ = completed_; }
  double Epoch() const;

  // False if the job lasts until its leased batches are done, and none is in stock.
  bool HasBatch() const;
  // Call this after HasBatch() was false. Settles the exchange, and waits for a batch or for the
  // end of all batches. False if the deadline came first.
  absl::StatusOr<bool> AwaitBatch(Time deadline);
  // Call this however the clocks ended. Batches that are not reported are trained on again by other
  // workers.
  void ReportDone();

  // True if the job's exchanges are made: those of this worker, or in async mode those of all
  // workers together. If async batches are leased, AwaitBatch has seen that all are done.
  bool MadeAll() const;
  // True if the answer of the current exchange may decide whether its clock was the last one.
  bool NearlyMadeAll() const;

  // True if the worker keeps state between clocks, and checkpoints want it.
  bool keeps_state() const { return keeps_state_; }
  // From now on the worker keeps state, although its exchange does not. For external jobs.
  absl::Status KeepState();
  // True if the job's next checkpoint wants what the worker keeps now.
  bool AtCut() const;
  // If so, settles the exchange and hands the state in. Only ABORTED is an error. After other
  // failures there is one checkpoint less, which does not justify an end of the training.
  absl::Status SaveAtCut();
  // Hands in the state, once a clock. The state is empty if the worker does not know where it was
  // to begin.
  absl::Status SaveState();
  bool knows_clock() const { return knows_clock_; }

  // Says what the worker waits for. Thread-safe.
  std::string Waiting() const;

 private:
  absl::Status OpenGroup();
  // Ends all waiting for other processes.
  void BreakOff();
  absl::Status BeginAt(const ParameterClient::Attachment& attachment);
  // Asks where to continue, and begins there. Repeats this if the others overtake the worker
  // meanwhile.
  absl::StatusOr<ParameterClient::Attachment> Join();
  absl::Status Initialize();
  absl::Status LoadState();
  // Contributions of clocks below `clock` count; with `dropped`, those of later ones do not.
  void Settled(uint64_t clock, bool dropped) const;
  // The job's length is a number of batches, which all workers lease.
  bool LastsForBatches() const;
  void ReportIfComplete();
  // The exchange was broken off. Its clock's contribution counts, or it was dropped.
  void ReportBrokenOff(bool counts);
  void ReportKept();

  const ParticipantContext context_;

  // Clocks that are over or in progress.
  struct Progress {
    // The number of contributions that the servers had applied, as last seen, and its last
    // increase.
    uint64_t version = 0;
    uint64_t version_step = 0;
    ExchangeReport last;
    // Metrics that are not reported yet.
    std::optional<v1::StepMetrics> kept;
    // How much of the client's traffic has been reported.
    Traffic reported;
    // The clock at which the worker's state was handed in last.
    std::optional<uint64_t> saved_at;
  };
  // The group refers to the client's layout.
  std::unique_ptr<HostGroup> group_;
  std::unique_ptr<ParameterClient> client_;
  ClockExchange* exchange_ = nullptr;
  InitialWeights initial_;
  // Null if data is not leased.
  std::unique_ptr<LeasedBatches> leases_;
  // Has its own synchronisation: the heartbeats' thread uses it, and through it the client.
  StopGate gate_;

  uint64_t clock_ = 0;
  uint64_t completed_ = 0;
  bool keeps_state_;
  // knows_clock_: the servers have said where the worker continues. has_state_: it has read the
  // weights of that clock, or loaded what an earlier life kept. A worker that is stopped before
  // that hands in an empty state. A worker that resumes from such a state starts afresh.
  bool knows_clock_ = false;
  bool has_state_ = false;
  bool asked_where_to_stop_ = false;
  bool leases_over_ = false;
  Progress progress_;
};

}  // namespace leeway
