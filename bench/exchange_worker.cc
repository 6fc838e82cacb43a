#include "bench/exchange_worker.h"

#include <memory>
#include <utility>
#include <vector>

#include <unistd.h>

#include "bench/base/contribution.h"
#include "client/calls/client_options.h"
#include "client/calls/parameter_client.h"
#include "client/session/coordinator_session.h"
#include "common/identity.h"
#include "common/rpc/channel.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr Duration kJoinWithin = std::chrono::seconds(120);
constexpr Duration kHeartbeatEvery = std::chrono::seconds(1);

class Worker {
 public:
  explicit Worker(const ExchangeWorkerOptions& options) : options_(options) {}

  absl::Status Open() {
    session_ = std::make_unique<CoordinatorSession>(
        MakeChannel(options_.coordinator),
        CoordinatorSession::Options{.address = options_.coordinator,
                                    .host = "bench",
                                    .pid = static_cast<uint32_t>(getpid()),
                                    .nonce = RandomIdentity()});
    ASSIGN_OR_RETURN(const v1::RegisterWorkerReply registration,
                     session_->Register(Request(), kJoinWithin));
    session_->StartHeartbeats(kHeartbeatEvery, {});
    ASSIGN_OR_RETURN(const ParameterClientOptions options, ClientOptionsOf(registration));
    ASSIGN_OR_RETURN(client_, ParameterClient::Open(options));
    contribution_ = client_->MakeVector();
    weights_ = client_->MakeVector();
    FillContribution(options_.rank, contribution_.span());
    ASSIGN_OR_RETURN(const auto attachment, client_->Attach());
    if (options_.rank == 0) RETURN_IF_ERROR(client_->Initialize(weights_.span()));
    clock_ = attachment.clock;
    return client_->Wait(client_->Pull(clock_, weights_.span())).status();
  }

  absl::StatusOr<Json> Exchange(uint64_t clocks) {
    std::vector<double> seconds;
    for (uint64_t i = 0; i < clocks; ++i) {
      const Time began = std::chrono::steady_clock::now();
      RETURN_IF_ERROR(
          client_->Wait(client_->PushPull(clock_, 1, contribution_.span(), weights_.span()))
              .status());
      seconds.push_back(Seconds(std::chrono::steady_clock::now() - began));
      session_->SetClock(++clock_);
    }
    return Json{{"seconds", std::move(seconds)},
                {"block_bytes", client_->layout().block_elements() * sizeof(float)}};
  }

 private:
  v1::RegisterWorkerRequest Request() const {
    v1::RegisterWorkerRequest request;
    request.set_rank(options_.rank);
    *request.mutable_schema() = options_.schema;
    request.set_steps_per_epoch(1);
    return request;
  }

  const ExchangeWorkerOptions options_;
  std::unique_ptr<CoordinatorSession> session_;
  std::unique_ptr<ParameterClient> client_;
  FloatBuffer contribution_;
  FloatBuffer weights_;
  uint64_t clock_ = 0;
};

}  // namespace

BenchService ExchangeWorker(const ExchangeWorkerOptions& options) {
  auto worker = std::make_shared<Worker>(options);
  return {.hello = Json::object(), .handle = [worker](const Json& request) -> absl::StatusOr<Json> {
            if (!request.contains("open")) {
              return worker->Exchange(request.value("clocks", uint64_t{0}));
            }
            RETURN_IF_ERROR(worker->Open());
            return Json::object();
          }};
}

}  // namespace leeway
