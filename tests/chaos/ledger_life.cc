#include "tests/chaos/ledger_life.h"

#include <memory>

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "client/calls/client_options.h"
#include "client/calls/parameter_client.h"
#include "client/session/coordinator_session.h"
#include "common/rpc/channel.h"
#include "common/status.h"
#include "tests/chaos/ledger.h"
#include "tests/chaos/unary_transport.h"

namespace leeway::testing {
namespace {

constexpr Duration kFind = std::chrono::seconds(60);

// One registration of the worker, from its beginning to its end.
class Life {
 public:
  Life(const LedgerWorker& worker, const v1::RegisterWorkerReply& registration,
       CoordinatorSession& session)
      : worker_(worker), registration_(registration), session_(session), ledger_(registration) {}
  // The heartbeats use the client, so they end first.
  ~Life() { session_.EndHeartbeats(); }

  // Runs until the job's end, and then leaves.
  absl::Status Run() {
    if (registration_.has_left_at()) {
      return session_.Leave(v1::LEAVE_STOPPED, registration_.left_at(), "");
    }
    RETURN_IF_ERROR(Begin());
    while (!Over()) RETURN_IF_ERROR(RunClock());
    return session_.Leave(v1::LEAVE_FINISHED, clock_, "");
  }

 private:
  absl::Status Begin() {
    ASSIGN_OR_RETURN(ParameterClientOptions options, ClientOptionsOf(registration_));
    options.on_unreached = [this] { session_.BeatSoon(); };
    TransportFactory transport;
    if (worker_.unary) {
      transport = [](const TransportOptions& of) { return std::make_unique<UnaryTransport>(of); };
    }
    ASSIGN_OR_RETURN(client_, ParameterClient::Open(options, transport));
    const double every = std::min(0.25, registration_.job().limits().lease_seconds() / 4);
    session_.StartHeartbeats(
        FromSeconds(every),
        {.waiting = [this] { return client_->Waiting(); },
         .on_stop_at = [this](uint64_t) { client_->Cancel(); },
         .on_servers = [this](const auto& servers) { client_->MoveServers(servers); },
         .on_refused = [this](const absl::Status&) { client_->Cancel(); }});
    contribution_ = client_->MakeVector();
    weights_ = client_->MakeVector();
    ASSIGN_OR_RETURN(const ParameterClient::Attachment attachment, client_->Attach());
    if (attachment.needs_initialize) RETURN_IF_ERROR(client_->Initialize(weights_.span()));
    clock_ = attachment.clock;
    session_.SetClock(clock_);
    return client_->Wait(client_->Pull(clock_, weights_.span())).status();
  }

  bool Over() const {
    const v1::JobLength& length = registration_.length();
    if (length.total_clocks() > 0) return version_ >= length.total_clocks();
    return clock_ >= length.clocks();
  }

  absl::Status RunClock() {
    worker_.compute(clock_);
    ledger_.Write(clock_, contribution_.span());
    if (clock_ == worker_.forget_at) std::fill_n(contribution_.data(), contribution_.size(), 0.0F);
    if (clock_ == worker_.repeat_at) ledger_.WriteAgain(clock_ - 1, contribution_.span());
    ASSIGN_OR_RETURN(const ParameterClient::Result result, Exchange());
    // A worker that is told to forget does not check itself: the ledger has to show the fault.
    if (const std::string wrong = ledger_.Check(clock_, weights_.span());
        !wrong.empty() && !worker_.forget_at.has_value() && !worker_.repeat_at.has_value()) {
      return absl::DataLossError(absl::StrCat("what was read cannot be: ", wrong));
    }
    version_ = result.version;
    session_.SetClock(++clock_);
    v1::StepMetrics step;
    step.set_clock(clock_);
    step.set_steps(1);
    step.set_examples(1);
    step.set_staleness(result.staleness);
    session_.Report(step);
    return absl::OkStatus();
  }

  // Returns as soon as the servers have said that they have the contribution.
  absl::StatusOr<ParameterClient::Result> Exchange() {
    const bool split = worker_.push_every > 0 && clock_ % worker_.push_every == 0;
    const auto pushed = split ? client_->Push(clock_, 1, contribution_.span())
                              : client_->PushPull(clock_, 1, contribution_.span(), weights_.span());
    ASSIGN_OR_RETURN(const ParameterClient::Result result, client_->Wait(pushed));
    RETURN_IF_ERROR(worker_.tell(registration_, clock_));
    if (!split) return result;
    return client_->Wait(client_->Pull(clock_ + 1, weights_.span()));
  }

  const LedgerWorker& worker_;
  const v1::RegisterWorkerReply& registration_;
  CoordinatorSession& session_;
  const Ledger ledger_;
  // These outlive the client, which may still send from them and receive into them.
  FloatBuffer contribution_;
  FloatBuffer weights_;
  std::unique_ptr<ParameterClient> client_;
  uint64_t clock_ = 0;
  uint64_t version_ = 0;
};

absl::Status CheckPlaces(const v1::RegisterWorkerReply& registration) {
  const v1::JobLength& length = registration.length();
  const uint64_t largest = std::max(length.clocks(), length.total_clocks());
  const uint64_t places = Ledger(registration).places();
  if (registration.schema().total() % registration.block_elements() == 0 && largest + 8 <= places) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("servers.block_bytes: a block has ", places,
                                                 " places for each of a worker's clocks, the job ",
                                                 largest, " of them"));
}

}  // namespace

absl::Status RunLedgerWorker(const LedgerWorker& worker) {
  const auto channel = MakeChannel(worker.coordinator);
  const CoordinatorSession::Options process = {.address = worker.coordinator,
                                               .host = "ledger",
                                               .pid = static_cast<uint32_t>(getpid()),
                                               .nonce = worker.nonce};
  ASSIGN_OR_RETURN(const v1::RegisterWorkerReply offer,
                   CoordinatorSession(channel, process).FetchJob(worker.rank, kFind));
  v1::RegisterWorkerRequest request;
  request.set_rank(worker.rank);
  request.set_steps_per_epoch(1);
  *request.mutable_schema() =
      Ledger::Schema(worker.blocks, offer.job().servers().block_bytes() / sizeof(float));
  while (true) {
    CoordinatorSession session(channel, process);
    ASSIGN_OR_RETURN(const v1::RegisterWorkerReply registration, session.Register(request, kFind));
    RETURN_IF_ERROR(CheckPlaces(registration));
    const absl::Status ended = Life(worker, registration, session).Run();
    if (!absl::IsFailedPrecondition(ended)) return ended;
    spdlog::warn("{}; registering again", std::string(ended.message()));
  }
}

}  // namespace leeway::testing
