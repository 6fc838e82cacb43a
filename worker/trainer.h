// A worker's training loop, from attaching to the servers to its last clock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/calls/contribution_memory.h"
#include "client/participant/clock_loop.h"
#include "client/participant/participant.h"
#include "client/session/coordinator_session.h"
#include "client/transport/transport.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "worker/data/dataset.h"
#include "worker/data/sources/training_data.h"
#include "worker/local_steps.h"
#include "worker/model/model.h"
#include "worker/training/clock_runner.h"

namespace leeway {

// What a trainer works with. The referenced objects must outlive the trainer.
struct TrainerContext {
  const v1::RegisterWorkerReply& registration;
  // A registered session whose heartbeats have not started yet.
  CoordinatorSession& session;
  const TrainingData& data;
  // The test data. Null if there is nothing to evaluate on.
  const Dataset* test = nullptr;
  Model& model;
  // The shared memory of the group on this host. Null if the worker sends its own contributions
  // (workers.per_host).
  ContributionMemory* contributions = nullptr;
  // The server in this process, if workers hold the blocks. Otherwise null.
  BlockHolder* holder = nullptr;
  // The folder to which model.initial is relative.
  std::string data_dir = {};
  // Makes the transport to the servers. If null, gRPC is used.
  TransportFactory transport;
  // Sleeps for workers.emulate.
  std::function<void(Duration)> sleep;
};

// Runs once, on one thread. Not thread-safe.
class Trainer {
 public:
  explicit Trainer(const TrainerContext& context);

  // Attaches, and runs clock after clock until the end of the job or a stop. Rank 0 sends the
  // initial weights to the servers if the servers have no weights, and evaluates the model. At each
  // cut and at the end, the worker hands in its state. Run does not leave the job. Returns the
  // reason with which the worker may leave: it has finished, or it was stopped. Returns the errors
  // of the exchange, the client and the coordinator, and ABORTED if a newer life of the rank
  // exists.
  absl::StatusOr<v1::LeaveReason> Run();

  // Returns the number of completed exchanges.
  uint64_t clock() const { return loop_ == nullptr ? 0 : loop_->completed(); }

 private:
  absl::Status Open();
  absl::Status OpenRunner();
  absl::Status Attach();
  // Returns the weights that this worker sends to the servers if they have none.
  absl::StatusOr<FloatBuffer> InitialWeights();
  // Runs all clocks. Returns true if the worker was stopped before the last clock.
  absl::StatusOr<bool> RunClocks();
  absl::Status RunClock();
  absl::Status EvaluateWhenDue();
  absl::StatusOr<v1::EvaluationMetrics> Evaluate();

  // These fields are constant after construction.
  const TrainerContext context_;
  const v1::RegisterWorkerReply& registration_;
  const v1::TrainingJob& job_;
  const bool evaluates_;
  // The number of clocks between two evaluations. 0 means that there is an evaluation only after
  // the last clock.
  const uint64_t evaluate_every_;

  // These five fields are constant after Open(). The loop must be destroyed first, and then the
  // participant, so they are declared last.
  std::unique_ptr<LocalSteps> steps_;
  std::unique_ptr<Carrier> carrier_;
  std::unique_ptr<ClockRunner> runner_;
  Participant participant_;
  std::unique_ptr<ClockLoop> loop_;
  // The average of the weights, for evaluation.weights: average.
  std::vector<float> average_;

  // The value of clock / evaluate_every_ at the last evaluation.
  uint64_t evaluated_ = 0;
};

}  // namespace leeway
