// Registers another program's worker in its job, and registers it again after the job has gone back
// to a checkpoint.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <grpcpp/channel.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/participant/clock_loop.h"
#include "client/participant/participant.h"
#include "client/session/call_breaker.h"
#include "client/session/coordinator_session.h"
#include "common/buffer.h"
#include "common/mutex.h"
#include "exchange/carriers/make_carrier.h"
#include "exchange/exchange.h"
#include "leeway/v1/coordinator.pb.h"
#include "library/job.h"

namespace leeway {

// One registration. The members are destroyed in this order: the loop, the participant, the
// exchange. The participant's client uses the exchange's vectors.
struct Registration {
  Registration(std::shared_ptr<grpc::Channel> channel, CoordinatorSession::Options options)
      : session(std::move(channel), std::move(options)) {}

  CoordinatorSession session;
  v1::RegisterWorkerReply reply;
  std::unique_ptr<Carrier> carrier;
  std::unique_ptr<Exchange> exchange;
  std::unique_ptr<Participant> participant;
  // Null if there is nothing to do, because the job is over or an earlier life has done all the
  // work.
  std::unique_ptr<ClockLoop> loop;
};

class Registrar {
 public:
  // Returns INVALID_ARGUMENT if an option or an environment variable is invalid.
  static absl::StatusOr<std::unique_ptr<Registrar>> Make(JobOptions options);

  // Registers, attaches, and begins the exchange with `weights`, which the first call allocates.
  // Registers again if the job has gone back to a checkpoint meanwhile. If an earlier life has done
  // all the work, the result has no loop. If the job is over, the result has neither a loop nor a
  // job.
  absl::StatusOr<std::unique_ptr<Registration>> Register(FloatBuffer& weights);

  // Any thread may call these two. Waiting returns what the newest registration waits for. Cancel
  // breaks off the running registration and every later one.
  std::string Waiting() const EXCLUDES(mutex_);
  void Cancel() EXCLUDES(mutex_);
  // If this process holds blocks, waits until the job is over, because others may read the blocks
  // until then. Cancel ends the wait.
  void AwaitEnd() EXCLUDES(mutex_);
  // Forgets the newest registration. Call this function before that registration is destroyed.
  void Forget() EXCLUDES(mutex_);

 private:
  Registrar(JobOptions options, uint64_t nonce) : options_(std::move(options)), nonce_(nonce) {}

  CoordinatorSession::Options Process();
  // Fetches the job, and makes from it the request for a registration.
  absl::Status FetchJob();
  absl::Status HoldBlocks() EXCLUDES(mutex_);
  std::shared_ptr<BlockHolder> Holder() const EXCLUDES(mutex_);
  absl::StatusOr<std::unique_ptr<Registration>> RegisterOnce();
  // Returns a registration without a loop, for a job that is over.
  std::unique_ptr<Registration> JobIsOver(FloatBuffer& weights);
  absl::Status Open(Registration& registration, FloatBuffer& weights);
  absl::StatusOr<FloatBuffer> InitialWeights() const;

  JobOptions options_;
  v1::ModelSchema schema_;
  std::optional<v1::Update> update_;
  const uint64_t nonce_;
  std::shared_ptr<grpc::Channel> channel_;
  // The request for a registration. Absent until the job is known.
  std::optional<v1::RegisterWorkerRequest> request_;
  double start_limit_ = 0;
  // The coordinator's answer to the latest registration.
  v1::RegisterWorkerReply before_;
  CallBreaker breaker_;
  mutable Mutex mutex_;
  Participant* newest_ GUARDED_BY(mutex_) = nullptr;
  // The object that holds blocks in this process; null if the process holds none.
  std::shared_ptr<BlockHolder> holder_ GUARDED_BY(mutex_);
};

}  // namespace leeway
