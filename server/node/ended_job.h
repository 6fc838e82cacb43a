// The coordinator of a job that was over before server 0 began. Whoever comes hears so at once;
// else it would look for a coordinator in vain, for minutes, and again and again.
#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"
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

  // Answers on `queue` from now on. Call it once the gRPC server runs.
  void Await(ServerQueue* queue);
  // Until each worker has heard it, or somebody stops the job, or `deadline`. Servers that are
  // later read it in the run folder.
  void WaitUntilHeard(Time deadline);

 private:
  absl::Status Refuse(const v1::RegisterWorkerRequest& request);

  // What everybody is told.
  v1::JobStatus status_;
  absl::Status refusal_;
  const size_t workers_;
  Mutex mutex_;
  CondVar changed_;
  // By rank; without one, by process.
  std::set<std::string> heard_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace leeway
