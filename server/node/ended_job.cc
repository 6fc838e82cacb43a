#include "server/node/ended_job.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/service/unary_call.h"

namespace leeway {

EndedJob::EndedJob(const v1::TrainingJob& job, const v1::CoordinatorRecord& record)
    : AdmittedService("leeway.v1.Coordinator"), workers_(job.workers().count()) {
  status_.set_name(job.metadata().name());
  status_.set_job_id(record.job_id());
  status_.set_state(record.outcome());
  status_.set_message(record.message());
  const std::string why = record.message().empty() ? "" : absl::StrCat(": ", record.message());
  refusal_ = record.outcome() == v1::JOB_FAILED
                 ? absl::FailedPreconditionError(absl::StrCat("the job has failed", why))
                 : absl::AlreadyExistsError(absl::StrCat("the job is over", why));
}

void EndedJob::Hear(std::string worker) {
  MutexLock lock(mutex_);
  heard_.insert(std::move(worker));
  changed_.NotifyAll();
}

absl::Status EndedJob::Refuse(const v1::RegisterWorkerRequest& request) {
  Hear(request.has_rank() ? absl::StrCat(request.rank())
                          : absl::StrCat(request.host(), " ", request.pid()));
  return refusal_;
}

absl::StatusOr<v1::LeaveReply> EndedJob::Release(const v1::LeaveRequest& request) {
  Hear(absl::StrCat(request.rank()));
  if (request.job() != status_.job_id() || status_.state() == v1::JOB_FAILED) return refusal_;
  v1::LeaveReply reply;
  reply.set_sealed(true);
  return reply;
}

void EndedJob::Await(ServerQueue* queue) {
  ServeUnary<v1::RegisterServerRequest, v1::RegisterServerReply>(
      queue, this, "leeway.v1.Coordinator.RegisterServer",
      [this](const v1::RegisterServerRequest&, auto done) { done(refusal_); });
  ServeUnary<v1::RegisterWorkerRequest, v1::RegisterWorkerReply>(
      queue, this, "leeway.v1.Coordinator.RegisterWorker",
      [this](const v1::RegisterWorkerRequest& request, auto done) { done(Refuse(request)); });
  ServeUnary<v1::LeaveRequest, v1::LeaveReply>(
      queue, this, "leeway.v1.Coordinator.Leave",
      [this](const v1::LeaveRequest& request, auto done) { done(Release(request)); });
  ServeUnary<v1::GetJobStatusRequest, v1::JobStatus>(
      queue, this, "leeway.v1.Coordinator.GetJobStatus",
      [this](const v1::GetJobStatusRequest&, auto done) { done(status_); });
  ServeUnary<v1::StopJobRequest, v1::StopJobReply>(queue, this, "leeway.v1.Coordinator.StopJob",
                                                   [this](const v1::StopJobRequest&, auto done) {
                                                     done(v1::StopJobReply());
                                                     MutexLock lock(mutex_);
                                                     stopped_ = true;
                                                     changed_.NotifyAll();
                                                   });
}

void EndedJob::WaitUntilHeard(Time deadline) {
  MutexLock lock(mutex_);
  while (!stopped_ && heard_.size() < workers_ && changed_.WaitUntil(mutex_, deadline)) {
  }
}

}  // namespace leeway
