#include "library/watch.h"

#include <atomic>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/calls/client_options.h"
#include "client/calls/parameter_client.h"
#include "client/participant/slow_call.h"
#include "client/session/call_breaker.h"
#include "client/session/coordinator_session.h"
#include "common/address.h"
#include "common/buffer.h"
#include "common/command_line/environment_place.h"
#include "common/identity.h"
#include "common/rpc/channel.h"
#include "common/status.h"
#include "library/job_messages.h"
#include "library/process.h"
#include "library/schema.h"

namespace leeway {
namespace {

// How long to wait for a coordinator that has answered before, because it may be restarting.
constexpr Duration kAgainLimit = std::chrono::seconds(10);
// How long to wait for a coordinator after the job's last update. It is short, because the
// coordinator is then ending, not restarting.
constexpr Duration kLastLimit = std::chrono::milliseconds(500);
// How often the watch asks for the servers' addresses while some servers do not answer at their
// known addresses.
constexpr Duration kAskAfter = std::chrono::milliseconds(500);

// While a read is pending, its background thread uses all fields except `breaker_` and
// `unreached_`, which any thread may use.
class OpenWatch final : public Watch {
 public:
  OpenWatch(const std::string& coordinator, Duration start_limit)
      : channel_(MakeChannel(coordinator)),
        session_(channel_, SessionOptions(coordinator, RandomIdentity(), breaker_)),
        limit_(start_limit) {}
  ~OpenWatch() override {
    breaker_.Break();
    if (slow_.pending()) slow_.Await(Time::max()).IgnoreError();
  }

  absl::StatusOr<bool> Read(Time deadline) override {
    if (!slow_.pending()) slow_.Start([this] { return ReadAll(); });
    return slow_.Await(deadline);
  }
  std::vector<JobTensor> tensors() const override { return TensorsOf(model_.schema()); }
  std::span<const float> weights() const override { return weights_.span(); }
  uint64_t version() const override { return version_; }

 private:
  absl::Status ReadAll() {
    while (true) {
      if (client_ == nullptr) RETURN_IF_ERROR(Connect());
      const absl::Status read = ReadOnce();
      if (read.ok()) return read;
      client_ = nullptr;
      // The job has gone back to a checkpoint since, so the watch connects again. If a server
      // refuses the same generation twice, there is another reason.
      const uint64_t generation = model_.generation();
      if (breaker_.broken() || !absl::IsFailedPrecondition(read)) return read;
      RETURN_IF_ERROR(Connect());
      if (model_.generation() == generation) return read;
    }
  }

  absl::Status Connect() {
    ASSIGN_OR_RETURN(v1::RegisterWorkerReply model, FetchModel());
    ASSIGN_OR_RETURN(ParameterClientOptions options, ClientOptionsOf(model));
    options.weights_stay = true;
    options.on_unreached = [this] { unreached_ = true; };
    if (weights_.size() == 0) weights_ = FloatBuffer(options.total);
    ASSIGN_OR_RETURN(client_, ParameterClient::Open(options));
    model_ = std::move(model);
    limit_ = kAgainLimit;
    return absl::OkStatus();
  }

  // Fetches the job's model. Returns an error if this is not the job that was read before.
  absl::StatusOr<v1::RegisterWorkerReply> FetchModel() {
    auto model = session_.FetchModel(SawLast() ? kLastLimit : limit_);
    if (absl::IsUnavailable(model.status()) && SawLast()) {
      return absl::AlreadyExistsError("the job is over, and its last update has been read");
    }
    const bool other = model.ok() && weights_.size() > 0 && model->job_id() != model_.job_id();
    if (!other) return model;
    return absl::InvalidArgumentError(absl::StrCat("the coordinator now has another job: '",
                                                   model->job().metadata().name(),
                                                   "'; open a new watch"));
  }

  // Returns true if the weights that were read include all updates of the whole job.
  bool SawLast() const { return version_ > 0 && version_ >= LastVersion(model_); }

  absl::Status ReadOnce() {
    const ParameterClient::Ticket ticket = client_->PullLatest(weights_.span());
    while (true) {
      const auto read = client_->Wait(ticket, std::chrono::steady_clock::now() + kAskAfter);
      if (read.ok()) version_ = read->version;
      if (read.ok() || client_->IsOver(ticket)) return read.status();
      if (breaker_.broken()) return absl::CancelledError("the watch was closed");
      if (unreached_.exchange(false)) RETURN_IF_ERROR(FollowServers());
    }
  }

  absl::Status FollowServers() {
    ASSIGN_OR_RETURN(const v1::RegisterWorkerReply model, FetchModel());
    if (model.generation() != model_.generation()) {
      return absl::FailedPreconditionError("the job has gone back to a checkpoint");
    }
    client_->MoveServers(EndpointsOf(model.servers(), model.local_servers()));
    return absl::OkStatus();
  }

  CallBreaker breaker_;
  std::atomic<bool> unreached_ = false;
  const std::shared_ptr<grpc::Channel> channel_;
  CoordinatorSession session_;
  // How long the watch waits for the coordinator's answer.
  Duration limit_;
  // The coordinator's latest answer.
  v1::RegisterWorkerReply model_;
  uint64_t version_ = 0;
  FloatBuffer weights_;
  std::unique_ptr<ParameterClient> client_;
  SlowCall slow_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Watch>> Watch::Open(std::string coordinator, double start_seconds) {
  RETURN_IF_ERROR(PrepareProcess());
  if (coordinator.empty()) {
    ASSIGN_OR_RETURN(const EnvironmentPlace place, PlaceFromEnvironment(PlaceRole::kWorker));
    coordinator = place.coordinator;
  }
  if (coordinator.empty()) {
    return absl::InvalidArgumentError(
        "no coordinator: give HOST:PORT of server 0, or set LEEWAY_COORDINATOR");
  }
  RETURN_IF_ERROR(Annotate(CheckAddressToReach(coordinator), "coordinator"));
  return std::make_unique<OpenWatch>(coordinator, FromSeconds(start_seconds));
}

}  // namespace leeway
