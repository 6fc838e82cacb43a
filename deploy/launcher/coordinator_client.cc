#include "deploy/launcher/coordinator_client.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <grpcpp/grpcpp.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/channel.h"
#include "common/grpc_status.h"
#include "common/mutex.h"
#include "common/status.h"
#include "leeway/v1/coordinator.grpc.pb.h"

namespace leeway {
namespace {

constexpr std::chrono::seconds kCallDeadline(5);

// One call in flight: what must outlive it.
template <typename Request, typename Reply>
struct Call {
  grpc::ClientContext context;
  Request request;
  Reply reply;
};

}  // namespace

struct CoordinatorClient::State {
  explicit State(const std::string& address, int event)
      : stub(v1::Coordinator::NewStub(MakeChannel(address))), event_fd(event) {}
  ~State() { close(event_fd); }

  void Announce() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(event_fd, &one, sizeof(one));
  }

  const std::unique_ptr<v1::Coordinator::Stub> stub;
  const int event_fd;
  Mutex mutex;
  bool asking GUARDED_BY(mutex) = false;
  bool stopping GUARDED_BY(mutex) = false;
  std::optional<v1::JobStatus> status GUARDED_BY(mutex);
  // Not empty: still to be said.
  std::string stop_reason GUARDED_BY(mutex);
};

absl::StatusOr<std::unique_ptr<CoordinatorClient>> CoordinatorClient::Connect(
    const std::string& address) {
  const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) return absl::InternalError(absl::StrCat("eventfd: ", strerror(errno)));
  return std::unique_ptr<CoordinatorClient>(
      new CoordinatorClient(std::make_shared<State>(address, event)));
}

CoordinatorClient::CoordinatorClient(std::shared_ptr<State> state) : state_(std::move(state)) {}
CoordinatorClient::~CoordinatorClient() = default;

int CoordinatorClient::fd() const { return state_->event_fd; }

void CoordinatorClient::AskStatus() {
  std::string reason;
  {
    MutexLock lock(state_->mutex);
    reason = state_->stop_reason;
    if (!reason.empty() && std::exchange(state_->stopping, true)) reason.clear();
    if (std::exchange(state_->asking, true)) return;
  }
  auto call = std::make_shared<Call<v1::GetJobStatusRequest, v1::JobStatus>>();
  call->context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
  state_->stub->async()->GetJobStatus(&call->context, &call->request, &call->reply,
                                      [state = state_, call](grpc::Status status) {
                                        {
                                          MutexLock lock(state->mutex);
                                          state->asking = false;
                                          if (status.ok()) state->status = std::move(call->reply);
                                        }
                                        if (status.ok()) state->Announce();
                                      });
  if (!reason.empty()) RequestStop(reason);
}

void CoordinatorClient::RequestStop(const std::string& reason) {
  {
    MutexLock lock(state_->mutex);
    state_->stop_reason = reason;
    state_->stopping = true;
  }
  auto call = std::make_shared<Call<v1::StopJobRequest, v1::StopJobReply>>();
  call->context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
  call->request.set_reason(reason);
  state_->stub->async()->StopJob(&call->context, &call->request, &call->reply,
                                 [state = state_, call](grpc::Status status) {
                                   MutexLock lock(state->mutex);
                                   state->stopping = false;
                                   if (status.ok()) state->stop_reason.clear();
                                 });
}

std::optional<v1::JobStatus> CoordinatorClient::TakeStatus() {
  uint64_t count;
  [[maybe_unused]] const ssize_t got = read(state_->event_fd, &count, sizeof(count));
  MutexLock lock(state_->mutex);
  return std::exchange(state_->status, std::nullopt);
}

absl::StatusOr<v1::JobStatus> FetchJobStatus(const std::string& address, Duration timeout) {
  const auto stub = v1::Coordinator::NewStub(MakeChannel(address));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::milliseconds>(timeout));
  v1::JobStatus reply;
  RETURN_IF_ERROR(Annotate(FromGrpc(stub->GetJobStatus(&context, {}, &reply)),
                           absl::StrCat("asking the coordinator at ", address)));
  return reply;
}

}  // namespace leeway
