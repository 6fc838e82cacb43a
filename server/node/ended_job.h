// A coordinator for a job that was over before server 0 began. It tells every worker and server at
// once that the job is over, including workers that have trained to the end and wait to leave.
// Otherwise they would look for a coordinator for minutes.
#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/service/admitted_service.h"
#include "common/service/server_queue.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/coordinator.grpc.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Thread-safe.
class EndedJob final : public AdmittedService<v1::Coordinator::Service> {
 public:
  EndedJob(const v1::TrainingJob& job, const v1::CoordinatorRecord& record);

  // Answers calls on `queue` from now on. Call this once the gRPC server runs.
  void Await(ServerQueue* queue);
  // Waits until every worker has received the outcome, a person stops the job, or `deadline` has
  // passed. Does not wait for servers: those that come later read the outcome in the run folder.
  void WaitUntilHeard(Time deadline);

 private:
  absl::Status Refuse(const v1::RegisterWorkerRequest& request);
  // Answers a worker that waits for the end of this job.
  absl::StatusOr<v1::LeaveReply> Release(const v1::LeaveRequest& request);
  // Counts a worker that has received the outcome.
  void Hear(std::string worker);

  // The answer to every call.
  v1::JobStatus status_;
  absl::Status refusal_;
  const size_t workers_;
  Mutex mutex_;
  CondVar changed_;
  // The workers that have received the outcome, by rank or, without a rank, by process.
  std::set<std::string> heard_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace leeway
