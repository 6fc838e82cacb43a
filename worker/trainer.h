// A worker's training loop, from attaching to the servers to its last clock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/contribution_memory.h"
#include "client/coordinator_session.h"
#include "client/host_group.h"
#include "client/parameter_client.h"
#include "client/transport.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "worker/data/dataset.h"
#include "worker/data/sources/training_data.h"
#include "worker/exchange/exchange.h"
#include "worker/leased_batches.h"
#include "worker/local_steps.h"
#include "worker/model/model.h"
#include "worker/stop_gate.h"

namespace leeway {

// References outlive the trainer.
struct TrainerContext {
  const v1::RegisterWorkerReply& registration;
  // A registered session whose heartbeats have not started yet.
  CoordinatorSession& session;
  const TrainingData& data;
  // Null if there is nothing to evaluate on.
  const Dataset* test = nullptr;
  Model& model;
  // Null if the worker hands in for itself (workers.per_host).
  ContributionMemory* contributions = nullptr;
  // What model.initial is below.
  std::string data_dir = {};
  // Null for gRPC.
  TransportFactory transport;
  // For workers.emulate.
  std::function<void(Duration)> sleep;
};

// Runs once, on one thread.
class Trainer : private ExchangeListener {
 public:
  // How training ended in order, and after how many clocks.
  struct End {
    v1::LeaveReason reason = v1::LEAVE_FINISHED;
    uint64_t clock = 0;
  };

  explicit Trainer(const TrainerContext& context);
  ~Trainer() override;

  // Attaches, and runs clock after clock until the job's end or a stop. Rank 0 gives the servers
  // the initial weights if they have none, and evaluates. At each cut and at the end the worker
  // hands in what it keeps. Does not leave the job. Returns the errors of the exchange, the client
  // and the coordinator; ABORTED if a newer life of the rank exists.
  absl::StatusOr<End> Run();

  // Exchanges completed.
  uint64_t clock() const { return completed_; }

 private:
  absl::Status Open();
  absl::Status OpenGroup();
  absl::Status OpenExchange();
  void StartHeartbeats();
  // What the worker waits for, in words.
  std::string Waiting() const;
  // Ends what is in progress with others.
  void BreakOff();
  absl::Status Attach();
  absl::Status BeginAt(const ParameterClient::Attachment& attachment);
  // Asks where to continue and begins there. Repeats this while the others overtake it meanwhile.
  absl::StatusOr<ParameterClient::Attachment> Join();
  // A clock was completed without this worker, so it continues at the newest one.
  absl::Status Rejoin(const absl::Status& why);
  absl::Status Initialize();
  absl::Status LoadState();
  // Runs all clocks, and reads the weights after the last one. True if it was stopped before that.
  absl::StatusOr<bool> RunClocks();
  absl::Status RunClock();
  absl::Status RunClockOrRejoin();
  // For a job that leases its batches until all are done: waits for a batch. False if all are done.
  absl::StatusOr<bool> AwaitBatch();
  // False if the worker must stop, before the work or in the middle of it.
  absl::StatusOr<bool> UnlessStopped(const std::function<absl::Status()>& work);
  // The gate's answer for an exchange: CANCELLED if it must not begin.
  absl::Status OnBegin(uint64_t clock) override;
  void OnComplete(const ExchangeReport& report) override;
  absl::Status AskWhereToStop();
  // True if the job's exchanges are made: those of this worker, or in async mode those of all
  // workers together.
  bool Over() const;
  // Whether the clock just run was the last one may depend on its exchange's answer.
  bool NearlyOver() const;
  ClockSpan NextSpan() const;
  // After a clock, as configured.
  absl::Status SaveAtCut();
  absl::Status EvaluateWhenDue();

  absl::Status SaveState();
  absl::StatusOr<v1::EvaluationMetrics> Evaluate();
  // Keeps the metrics of a clock until its exchange is complete.
  void Keep(const ClockSpan& span, const ClockReport& report);
  void ReportIfComplete();
  // The clock's contribution counts, though its exchange was broken off; or it was dropped.
  void ReportBrokenOff(bool counts);
  void ReportKept();
  double Epoch() const;

  // Constant after construction.
  const TrainerContext context_;
  const v1::RegisterWorkerReply& registration_;
  const v1::TrainingJob& job_;
  const bool evaluates_;
  // Clocks between two evaluations; 0: only the last one.
  const uint64_t evaluate_every_;

  // Constant after Open(). The client goes first: until then calls of a failed exchange may still
  // use the exchange's vectors. The group refers to the client's layout.
  std::unique_ptr<LeasedBatches> leases_;
  std::unique_ptr<LocalSteps> steps_;
  // Null if the worker hands in for itself.
  std::unique_ptr<HostGroup> group_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<ParameterClient> client_;
  // With evaluation.weights: average.
  std::vector<float> average_;

  // Has its own synchronisation: the heartbeats' thread uses it, and through it the client.
  StopGate gate_;

  // Clocks whose steps are computed. The exchange of the last one may still be in progress.
  uint64_t clock_ = 0;
  uint64_t completed_ = 0;
  // The servers have said where the worker continues; and it has read the weights of that clock, or
  // loaded what an earlier life kept. A worker that is stopped before that hands in an empty state.
  // A worker that resumes from such a state starts afresh.
  bool knows_clock_ = false;
  bool has_state_ = false;
  // Contributions that the servers had applied, as last seen, and their increase since the time
  // before.
  uint64_t version_ = 0;
  uint64_t version_step_ = 0;
  ExchangeReport last_exchange_;
  std::optional<v1::StepMetrics> kept_;
  // How much of the client's counts has been reported.
  Traffic reported_;
  bool asked_where_to_stop_ = false;
  // All leased batches of the job are done.
  bool leases_over_ = false;
  uint64_t saved_clock_;
  // clock / evaluate_every_ at the last evaluation.
  uint64_t evaluated_ = 0;
};

}  // namespace leeway
