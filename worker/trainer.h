// A worker's training loop, from attaching to the servers to its last clock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "worker/client/coordinator_session.h"
#include "worker/client/parameter_client.h"
#include "worker/client/transport.h"
#include "worker/data/dataset.h"
#include "worker/data/training_data.h"
#include "worker/exchange/exchange.h"
#include "worker/leased_batches.h"
#include "worker/local_steps.h"
#include "worker/model/model.h"
#include "worker/stop_gate.h"

namespace leeway {

// References outlive the trainer.
struct TrainerContext {
  const v1::RegisterWorkerReply& registration;
  // Registered; its heartbeats not yet started.
  CoordinatorSession& session;
  const TrainingData& data;
  // Null: there is nothing to evaluate on.
  const Dataset* test = nullptr;
  Model& model;
  // Null: gRPC.
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

  // Attaches, gives the servers the initial weights where they have none (rank 0), and runs clock
  // after clock until the job's end or a stop; rank 0 evaluates. What the worker keeps is handed in
  // at each cut and at the end. Does not leave the job. Errors: the exchange's, the client's and
  // the coordinator's; ABORTED if a newer life of the rank exists.
  absl::StatusOr<End> Run();

  // Exchanges completed.
  uint64_t clock() const { return completed_; }

 private:
  absl::Status Open();
  absl::Status Attach();
  absl::Status BeginAt(const ParameterClient::Attachment& attachment);
  // Asks where to go on and begins there, until the others have not overtaken it meanwhile.
  absl::StatusOr<ParameterClient::Attachment> Join();
  // A clock was completed without this worker: it goes on at the newest one.
  absl::Status Rejoin(const absl::Status& why);
  absl::Status Initialize();
  absl::Status LoadState();
  // Runs clocks until the last one, and reads the weights after it; true: stopped before.
  absl::StatusOr<bool> RunClocks();
  absl::Status RunClock();
  absl::Status RunClockOrRejoin();
  // Where the job's batches are leased until all are done: waits for one. False: they are.
  absl::StatusOr<bool> AwaitBatch();
  // False: the worker is to stop, before the work or in its middle.
  absl::StatusOr<bool> UnlessStopped(const std::function<absl::Status()>& work);
  // The gate's answer for an exchange: CANCELLED if it must not begin.
  absl::Status OnBegin(uint64_t clock) override;
  void OnComplete(const ExchangeReport& report) override;
  absl::Status AskWhereToStop();
  // The job's exchanges are made: this worker's, or in async mode those of all together.
  bool Over() const;
  // Whether the clock just run was the last one may depend on its exchange's answer.
  bool NearlyOver() const;
  ClockSpan NextSpan() const;
  // After a clock, as configured.
  absl::Status SaveAtCut();
  absl::Status EvaluateWhenDue();

  absl::Status SaveState();
  absl::Status Evaluate();
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
  // use the exchange's vectors.
  std::unique_ptr<LeasedBatches> leases_;
  std::unique_ptr<LocalSteps> steps_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<ParameterClient> client_;

  // Has its own synchronisation: the heartbeats' thread uses it, and through it the client.
  StopGate gate_;

  // Clocks whose steps are computed; the exchange of the last one may still be under way.
  uint64_t clock_ = 0;
  uint64_t completed_ = 0;
  // The servers have said where it goes on; and it has read the weights of then, or loaded what a
  // life before this one kept. One that is stopped before hands in an empty state: whoever resumes
  // from it begins afresh.
  bool knows_clock_ = false;
  bool has_state_ = false;
  // Contributions that the servers had applied, as last seen, and by how many they were more than
  // the time before.
  uint64_t version_ = 0;
  uint64_t version_step_ = 0;
  ExchangeReport last_exchange_;
  std::optional<v1::StepMetrics> kept_;
  // What has been reported of the client's.
  Traffic reported_;
  bool asked_where_to_stop_ = false;
  // All leased batches of the job are done.
  bool leases_over_ = false;
  uint64_t saved_clock_;
  // How many times evaluate_every_ the clock was when the last evaluation was made.
  uint64_t evaluated_ = 0;
};

}  // namespace leeway
