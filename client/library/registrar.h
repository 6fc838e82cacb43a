// Brings a worker of somebody else's program into its job, and brings it in again where the job
// has gone back to a checkpoint.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <grpcpp/channel.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/exchange/step_exchange.h"
#include "client/library/job.h"
#include "client/participant/participant.h"
#include "client/session/call_breaker.h"
#include "client/session/coordinator_session.h"
#include "common/buffer.h"
#include "common/mutex.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// One registration. The exchange's vectors outlive the participant's client.
struct Registration {
  Registration(std::shared_ptr<grpc::Channel> channel, CoordinatorSession::Options options)
      : session(std::move(channel), std::move(options)) {}

  CoordinatorSession session;
  v1::RegisterWorkerReply reply;
  std::unique_ptr<StepExchange> exchange;
  std::unique_ptr<Participant> participant;
};

class Registrar {
 public:
  // INVALID_ARGUMENT for options that make no sense, or an environment that does not.
  static absl::StatusOr<std::unique_ptr<Registrar>> Make(JobOptions options);

  // Registers, attaches, and begins the exchange with `weights`, which are made at the first time.
  // Goes on where the job has moved meanwhile. Where a life before this one has done all there was
  // to do, the registration has no participant, and where the job is over, no job either.
  absl::StatusOr<std::unique_ptr<Registration>> Register(FloatBuffer& weights);

  // By any thread. What the newest registration waits for; and to break off what it does, for good.
  std::string Waiting() const EXCLUDES(mutex_);
  void Cancel() EXCLUDES(mutex_);
  // The newest registration is going to be destroyed.
  void Forget() EXCLUDES(mutex_);

 private:
  Registrar(JobOptions options, uint64_t nonce) : options_(std::move(options)), nonce_(nonce) {}

  CoordinatorSession::Options Process();
  // The job, and with it what to register as.
  absl::Status FetchJob();
  absl::StatusOr<std::unique_ptr<Registration>> RegisterOnce();
  // A registration without a participant.
  std::unique_ptr<Registration> JobIsOver(FloatBuffer& weights);
  absl::Status Open(Registration& registration, FloatBuffer& weights);

  JobOptions options_;
  v1::ModelSchema schema_;
  std::optional<v1::Update> update_;
  const uint64_t nonce_;
  std::shared_ptr<grpc::Channel> channel_;
  // Absent until the job is known.
  std::optional<v1::RegisterWorkerRequest> request_;
  double start_limit_ = 0;
  // The answer to the latest registration.
  v1::RegisterWorkerReply before_;
  CallBreaker breaker_;
  mutable Mutex mutex_;
  Participant* newest_ GUARDED_BY(mutex_) = nullptr;
};

}  // namespace leeway
