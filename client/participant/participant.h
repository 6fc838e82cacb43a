// Everything that a worker does in its job except computing. The participant attaches to the
// servers, keeps the lease by heartbeats, and asks the stop gate before each exchange. If the other
// workers have gone on without this one, it joins them again. It keeps a stock of leased batches,
// saves the worker's state at each cut, and reports the metrics of each clock.
//
// The program that computes contains the loop, and calls these functions in this order:
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
// The worker's trainer (worker/trainer.h) contains such a loop; so does the library for other
// languages (library).
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
#include "client/participant/clock_exchange.h"
#include "client/participant/clock_span.h"
#include "client/participant/stop_gate.h"
#include "client/session/coordinator_session.h"
#include "client/session/leased_batches.h"
#include "client/transport/transport.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// What a participant needs. References outlive the participant.
struct ParticipantContext {
  const v1::RegisterWorkerReply& registration;
  // A registered session whose heartbeats have not started yet.
  CoordinatorSession& session;
  // Null if the worker sends its own contribution (workers.per_host).
  ContributionMemory* contributions = nullptr;
  // If null, the transport is gRPC.
  TransportFactory transport = nullptr;
};

// Returns the model's first weights. It is called if this worker must send them to the servers.
using InitialWeights = std::function<absl::StatusOr<FloatBuffer>()>;

// Used for one registration. Not thread-safe, except for what the heartbeats call.
class Participant : public ExchangeListener {
 public:
  explicit Participant(const ParticipantContext& context);
  // Ends the heartbeats, then the client. The exchange must outlive the participant, because the
  // client's calls may use the exchange's vectors until the client has ended.
  ~Participant() override;

  absl::Status Open();
  // Call these after Open(). The group is null if the worker sends its own contribution.
  ParameterClient& client() { return *client_; }
  HostGroup* group() { return group_.get(); }
  // Returns null if the number of the step decides which batch is next.
  LeasedBatches* leases() const { return leases_.get(); }

  // Starts the heartbeats. The exchange outlives the participant.
  void Start(ClockExchange& exchange, InitialWeights initial);
  // Asks the servers where the worker goes on, and begins the exchange there. If the servers have
  // no weights and this worker must supply them, sends the first weights. In a resumed job, loads
  // the worker's state. Returns CANCELLED if the worker was stopped before that.
  absl::Status Attach();
  // Goes on at the newest clock after a clock was completed without this worker (`why` is
  // ALREADY_EXISTS). Returns `why` if the exchange cannot go on at another clock.
  absl::Status Rejoin(const absl::Status& why);

  // Runs `work`. Returns true if it succeeds, and false if it was CANCELLED because the worker must
  // stop in order. If the coordinator refuses the worker, returns the reason. Returns any other
  // error of `work`.
  absl::StatusOr<bool> UnlessStopped(const std::function<absl::Status()>& work);
  // Returns true if a stop is wanted and AskWhereToStop has not asked yet.
  bool IsToAskWhereToStop() const;
  // If IsToAskWhereToStop(), settles the exchange and asks at which clock to stop.
  absl::Status AskWhereToStop();
  // Returns true if the exchange of clock() may begin.
  bool IsOpen() const { return gate_.IsOpen(clock_); }
  // Asks the gate about the exchange of `clock`. Returns CANCELLED if the exchange must not begin.
  absl::Status OnBegin(uint64_t clock) override;
  void OnComplete(const ExchangeReport& report) override;

  // Returns the steps of the next clock.
  ClockSpan NextSpan() const;
  // Call this when the steps of clock() are computed. Sends their metrics when the exchange of the
  // clock is complete.
  void Advance(v1::StepMetrics metrics);
  // clock() is the number of clocks whose steps are computed; the last clock's exchange may still
  // be in progress. completed() is the number of completed exchanges.
  uint64_t clock() const { return clock_; }
  uint64_t completed() const { return completed_; }
  // Call this if a stop has broken off the last exchange, so that its clock's steps count for
  // nothing.
  void TakeBackClock() { clock_ = completed_; }
  double Epoch() const;

  // Returns false if the job lasts until its leased batches are done, and no batch is in stock.
  bool HasBatch() const;
  // Call this after HasBatch() has returned false. Settles the exchange, and waits until there is a
  // batch or all batches are done. Returns false if the deadline came first.
  absl::StatusOr<bool> AwaitBatch(Time deadline);
  // Reports the batches that are done. Call this after the last clock, also after an error, because
  // other workers train again on batches that are not reported.
  void ReportDone();

  // Returns true if all of this worker's exchanges are made, or in async mode all exchanges of all
  // workers together. In async mode with leased batches, returns true once AwaitBatch has found
  // that all batches are done.
  bool MadeAll() const;
  // Returns true if the answer of the current exchange may decide whether its clock was the last
  // one.
  bool NearlyMadeAll() const;

  // Returns true if the worker keeps state between clocks, so that checkpoints need it.
  bool keeps_state() const { return keeps_state_; }
  // Makes the worker keep state although its exchange does not. For external jobs.
  absl::Status KeepState();
  // Returns true if the job's next checkpoint needs the worker's present state.
  bool AtCut() const;
  // If AtCut(), settles the exchange and saves the state. Returns an error only for ABORTED,
  // because any other failure costs one checkpoint only, and training can go on.
  absl::Status SaveAtCut();
  // Saves the state, once in a clock. Saves an empty state if the worker has not begun at its first
  // clock yet.
  absl::Status SaveState();
  bool knows_clock() const { return knows_clock_; }

  // Returns what the worker waits for. Thread-safe.
  std::string Waiting() const;

 private:
  absl::Status OpenGroup();
  // Ends all waiting for other processes.
  void BreakOff();
  absl::Status BeginAt(const ParameterClient::Attachment& attachment);
  // Asks the servers where to go on, and begins there. Repeats this if the other workers overtake
  // this one meanwhile.
  absl::StatusOr<ParameterClient::Attachment> Join();
  absl::Status Initialize();
  absl::Status LoadState();
  // Notes that contributions of clocks below `clock` count. With `dropped`, contributions of later
  // clocks do not count.
  void Settled(uint64_t clock, bool dropped) const;
  // Returns true if the job's length is a number of batches, which all workers lease.
  bool LastsForBatches() const;
  void ReportIfComplete();
  // Reports the clock of an exchange that was broken off. `counts` is whether the servers have
  // counted its contribution or dropped it.
  void ReportBrokenOff(bool counts);
  void ReportKept();

  const ParticipantContext context_;

  // What is known of the clocks that are over or in progress.
  struct Progress {
    // The number of contributions that the servers had applied at the latest report, and how much
    // it had risen since the report before.
    uint64_t version = 0;
    uint64_t version_step = 0;
    ExchangeReport last;
    // Metrics that are not reported yet.
    std::optional<v1::StepMetrics> kept;
    // The part of the client's traffic that has been reported.
    Traffic reported;
    // The clock at which the worker's state was last saved.
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
  // knows_clock_ is whether the servers have answered where the worker goes on. has_state_ is
  // whether the worker has read the weights of that clock, or loaded the state of an earlier life.
  // A worker that is stopped earlier saves an empty state, and a worker that resumes from an empty
  // state starts afresh.
  bool knows_clock_ = false;
  bool has_state_ = false;
  bool asked_where_to_stop_ = false;
  bool leases_over_ = false;
  Progress progress_;
};

}  // namespace leeway
