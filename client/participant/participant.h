// A worker's part in its job, but for what it computes: it attaches to the servers, keeps the lease
// by heartbeats, goes through the stop gate before each exchange, joins again where the others went
// on without it, keeps a stock of leased batches, hands in its state at each cut, and reports what
// each clock has measured.
//
// Whoever computes has the loop, and calls in this order:
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
  // Null if the worker hands in for itself (workers.per_host).
  ContributionMemory* contributions = nullptr;
  // Null for gRPC.
  TransportFactory transport = nullptr;
};

// The model's first weights; asked for if this worker is to give them to the servers.
using InitialWeights = std::function<absl::StatusOr<FloatBuffer>()>;

// One registration's. Not thread-safe, but for what the heartbeats call.
class Participant : public ExchangeListener {
 public:
  explicit Participant(const ParticipantContext& context);
  // Ends the heartbeats, then the client: until then calls of a failed exchange may still use the
  // exchange's vectors, so the exchange goes after the participant.
  ~Participant() override;

  absl::Status Open();
  // After Open(). The group is null if the worker hands in for itself.
  ParameterClient& client() { return *client_; }
  HostGroup* group() { return group_.get(); }
  // Null if the step's number decides which batch is next.
  LeasedBatches* leases() const { return leases_.get(); }

  // Begins the heartbeats. The exchange outlives the participant.
  void Start(ClockExchange& exchange, InitialWeights initial);
  // Asks the servers where to go on, gives them the first weights if they have none and this
  // worker is to, loads the worker's state of a resumed job, and begins the exchange there.
  // CANCELLED if it was stopped before that.
  absl::Status Attach();
  // A clock was completed without this worker (`why`: ALREADY_EXISTS), so it goes on at the newest
  // one. `why` if the exchange cannot.
  absl::Status Rejoin(const absl::Status& why);

  // Runs `work`. False if it was CANCELLED because the worker is to stop in order. The errors of
  // `work`, and why the coordinator refuses the worker.
  absl::StatusOr<bool> UnlessStopped(const std::function<absl::Status()>& work);
  // A stop is wanted, and AskWhereToStop has not asked yet.
  bool IsToAskWhereToStop() const;
  // If so: settles the exchange and asks at which clock.
  absl::Status AskWhereToStop();
  // The exchange of clock() may begin.
  bool IsOpen() const { return gate_.IsOpen(clock_); }
  // The gate's answer for an exchange: CANCELLED if it must not begin.
  absl::Status OnBegin(uint64_t clock) override;
  void OnComplete(const ExchangeReport& report) override;

  // The steps of the next clock.
  ClockSpan NextSpan() const;
  // The steps of clock() are computed. What they have measured goes out when its exchange is
  // complete.
  void Advance(v1::StepMetrics metrics);
  // Clocks whose steps are computed; the exchange of the last one may still be in progress. And
  // exchanges completed.
  uint64_t clock() const { return clock_; }
  uint64_t completed() const { return completed_; }
  // A stop has broken the last exchange off: its clock's steps count for nothing.
  void TakeBackClock() { clock_ = completed_; }
  double Epoch() const;

  // False if the job lasts until its leased batches are done, and none is in stock.
  bool HasBatch() const;
  // Then: settles the exchange and waits for a batch, or for the end of all. False if the deadline
  // came first.
  absl::StatusOr<bool> AwaitBatch(Time deadline);
  // However the clocks ended: what is not reported, others do once more.
  void ReportDone();

  // The job's exchanges are made: those of this worker, or in async mode those of all workers
  // together. Where async batches are leased, AwaitBatch has seen that all are done.
  bool MadeAll() const;
  // Whether the clock just run was the last one may depend on its exchange's answer.
  bool NearlyMadeAll() const;

  // The worker keeps state between clocks, and checkpoints want it.
  bool keeps_state() const { return keeps_state_; }
  // From now on it does, although its exchange does not: an external job's.
  absl::Status KeepState();
  // The job's next checkpoint wants what the worker keeps now.
  bool AtCut() const;
  // If so, settles the exchange and hands it in. Only ABORTED is an error: without it there is one
  // checkpoint less, which is no reason to stop training.
  absl::Status SaveAtCut();
  // Hands it in, once a clock. An empty one if the worker does not know where it was to begin.
  absl::Status SaveState();
  bool knows_clock() const { return knows_clock_; }

  // What the worker waits for, in words. Thread-safe.
  std::string Waiting() const;

 private:
  absl::Status OpenGroup();
  // Ends what is in progress with others.
  void BreakOff();
  absl::Status BeginAt(const ParameterClient::Attachment& attachment);
  // Asks where to continue and begins there. Repeats this while the others overtake it meanwhile.
  absl::StatusOr<ParameterClient::Attachment> Join();
  absl::Status Initialize();
  absl::Status LoadState();
  // Contributions of clocks below `clock` count; with `dropped`, those of later ones do not.
  void Settled(uint64_t clock, bool dropped) const;
  // The job's length is a number of batches, which all workers lease.
  bool LastsForBatches() const;
  void ReportIfComplete();
  // The clock's contribution counts, though its exchange was broken off; or it was dropped.
  void ReportBrokenOff(bool counts);
  void ReportKept();

  const ParticipantContext context_;

  // What is over or in progress, in clocks.
  struct Progress {
    // Contributions that the servers had applied, as last seen, and their increase since the time
    // before.
    uint64_t version = 0;
    uint64_t version_step = 0;
    ExchangeReport last;
    // Measured, and not reported yet.
    std::optional<v1::StepMetrics> kept;
    // How much of the client's counts has been reported.
    Traffic reported;
    // At which clock the worker's state was handed in last.
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
  // The servers have said where the worker continues; and it has read the weights of that clock, or
  // loaded what an earlier life kept. A worker that is stopped before that hands in an empty state.
  // A worker that resumes from such a state starts afresh.
  bool knows_clock_ = false;
  bool has_state_ = false;
  bool asked_where_to_stop_ = false;
  bool leases_over_ = false;
  Progress progress_;
};

}  // namespace leeway
