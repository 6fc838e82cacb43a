#include "launcher/supervision/coordinator_client.h"

#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include <grpcpp/grpcpp.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "common/printable.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "common/status.h"
#include "leeway/v1/coordinator.grpc.pb.h"

namespace leeway {
namespace {

constexpr std::chrono::seconds kCallDeadline(5);

// The data of one call, which must live until the call is over.
template <typename Request, typename Reply>
struct Call {
  grpc::ClientContext context;
  Request request;
  Reply reply;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> reader;
  // Called when the call is over.
  std::function<void()> done;

  // Begins a call. The caller has set `reader` for it.
  void Begin() {
    reader->StartCall();
    reader->Finish(&reply, &status, &done);
  }
};

}  // namespace

struct CoordinatorClient::State {
  explicit State(const std::string& address, int event)
      : stub(v1::Coordinator::NewStub(MakeChannel(address))),
        event_fd(event),
        thread([this] { Serve(); }) {}
  // Destroy this object only when no call is in flight.
  ~State() {
    queue.Shutdown();
    thread.join();
    close(event_fd);
  }

  // Serves all calls on one thread of its own, because gRPC would serve callbacks on as many
  // threads as half of the processors.
  void Serve() {
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) {
      // Move `done` out first, because the call may be destroyed as soon as `done` has reported its
      // end.
      const std::function<void()> done = std::move(*static_cast<std::function<void()>*>(tag));
      done();
    }
  }

  void Announce() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(event_fd, &one, sizeof(one));
  }

  const std::unique_ptr<v1::Coordinator::Stub> stub;
  const int event_fd;
  grpc::CompletionQueue queue;
  Mutex mutex;
  CondVar changed;
  bool asking GUARDED_BY(mutex) = false;
  bool stopping GUARDED_BY(mutex) = false;
  // The two calls. The thread uses `ask` while `asking` is set, and `stop` while `stopping` is set.
  std::unique_ptr<Call<v1::GetJobStatusRequest, v1::JobStatus>> ask;
  std::unique_ptr<Call<v1::StopJobRequest, v1::StopJobReply>> stop;
  std::optional<v1::JobStatus> status GUARDED_BY(mutex);
  // If not empty, the request to stop has not been answered yet.
  std::string stop_reason GUARDED_BY(mutex);
  // Declared last, because the thread uses the other members.
  std::thread thread;
};

absl::StatusOr<std::unique_ptr<CoordinatorClient>> CoordinatorClient::Connect(
    const std::string& address) {
  const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) return absl::InternalError(absl::StrCat("eventfd: ", strerror(errno)));
  return std::unique_ptr<CoordinatorClient>(
      new CoordinatorClient(std::make_unique<State>(address, event)));
}

CoordinatorClient::CoordinatorClient(std::unique_ptr<State> state) : state_(std::move(state)) {}

CoordinatorClient::~CoordinatorClient() {
  if (state_->ask != nullptr) state_->ask->context.TryCancel();
  if (state_->stop != nullptr) state_->stop->context.TryCancel();
  MutexLock lock(state_->mutex);
  while (state_->asking || state_->stopping) state_->changed.Wait(state_->mutex);
}

int CoordinatorClient::fd() const { return state_->event_fd; }

void CoordinatorClient::AskStatus() {
  std::string reason;
  {
    MutexLock lock(state_->mutex);
    if (!state_->stopping) reason = state_->stop_reason;
    if (std::exchange(state_->asking, true)) return;
  }
  state_->ask = std::make_unique<Call<v1::GetJobStatusRequest, v1::JobStatus>>();
  auto* call = state_->ask.get();
  call->context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
  call->done = [state = state_.get(), call] {
    MutexLock lock(state->mutex);
    if (call->status.ok()) {
      MakePrintable(call->reply);
      state->status = std::move(call->reply);
      state->Announce();
    }
    state->asking = false;
    state->changed.NotifyAll();
  };
  call->reader =
      state_->stub->PrepareAsyncGetJobStatus(&call->context, call->request, &state_->queue);
  call->Begin();
  if (!reason.empty()) RequestStop(reason);
}

void CoordinatorClient::RequestStop(const std::string& reason) {
  {
    MutexLock lock(state_->mutex);
    state_->stop_reason = reason;
    if (std::exchange(state_->stopping, true)) return;
  }
  state_->stop = std::make_unique<Call<v1::StopJobRequest, v1::StopJobReply>>();
  auto* call = state_->stop.get();
  call->context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
  call->request.set_reason(reason);
  call->done = [state = state_.get(), call] {
    MutexLock lock(state->mutex);
    if (call->status.ok()) state->stop_reason.clear();
    state->stopping = false;
    state->changed.NotifyAll();
  };
  call->reader = state_->stub->PrepareAsyncStopJob(&call->context, call->request, &state_->queue);
  call->Begin();
}

std::optional<v1::JobStatus> CoordinatorClient::TakeStatus() {
  uint64_t count;
  [[maybe_unused]] const ssize_t got = read(state_->event_fd, &count, sizeof(count));
  MutexLock lock(state_->mutex);
  return std::exchange(state_->status, std::nullopt);
}

namespace {

// Makes one call to the coordinator and waits for the answer.
template <typename Request, typename Reply>
absl::StatusOr<Reply> AskCoordinator(
    const std::string& address,
    grpc::Status (v1::Coordinator::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
    const Request& request, Duration timeout) {
  const auto stub = v1::Coordinator::NewStub(MakeChannel(address));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::milliseconds>(timeout));
  Reply reply;
  const grpc::Status status = (stub.get()->*method)(&context, request, &reply);
  const absl::Status result = ResultOf(status, context);
  // Do not report a refusal by the coordinator as a fault of the network.
  const bool refused = absl::IsInvalidArgument(result) || absl::IsFailedPrecondition(result);
  RETURN_IF_ERROR(Annotate(result, absl::StrCat(refused ? "the request was refused by" : "asking",
                                                " the coordinator at ", address)));
  // Make the answer printable. A person sees it, and other processes have written parts of it.
  MakePrintable(reply);
  return reply;
}

}  // namespace

absl::StatusOr<uint32_t> RequestServers(const std::string& address, uint32_t servers,
                                        Duration timeout) {
  v1::ResizeServersRequest request;
  request.set_servers(servers);
  ASSIGN_OR_RETURN(
      const v1::ResizeServersReply reply,
      AskCoordinator(address, &v1::Coordinator::Stub::ResizeServers, request, timeout));
  return reply.before();
}

absl::Status RequestStop(const std::string& address, const std::string& reason, Duration timeout) {
  v1::StopJobRequest request;
  request.set_reason(reason);
  return AskCoordinator(address, &v1::Coordinator::Stub::StopJob, request, timeout).status();
}

absl::StatusOr<v1::JobStatus> FetchJobStatus(const std::string& address, Duration timeout) {
  return AskCoordinator(address, &v1::Coordinator::Stub::GetJobStatus, v1::GetJobStatusRequest(),
                        timeout);
}

}  // namespace leeway
