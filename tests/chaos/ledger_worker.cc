// leeway-ledger-worker: a worker whose contributions can be told apart in the servers' weights
// (tests/chaos/ledger.h), over the client library that leeway-worker has. It writes down what it is
// told, a line "incarnation generation clock" for each contribution whose push was answered, and
// checks what every answer says about everybody's contributions. tests/chaos/ledger.py reconciles
// the lines with what the servers have at the end.
//
// Exit status: 0 done; 2 wrong arguments; 3 what it has read cannot be; anything else: start it
// again.

#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "client/client_options.h"
#include "client/coordinator_session.h"
#include "client/parameter_client.h"
#include "common/command_line/security_flags.h"
#include "common/identity.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/rpc/channel.h"
#include "common/rpc/transport_security.h"
#include "common/status.h"
#include "tests/chaos/ledger.h"
#include "tests/chaos/unary_transport.h"

namespace leeway::testing {
namespace {

constexpr Duration kFind = std::chrono::seconds(60);
constexpr int kUsage = 2;
constexpr int kImpossible = 3;

struct Flags {
  std::string coordinator;
  uint32_t rank = 0;
  std::string told;
  uint64_t blocks = 4;
  // How long a step takes.
  int step_milliseconds = 3;
  // In place of PushPull: Push, the line, and then Pull, at every clock that this divides. 0:
  // never.
  uint64_t push_every = 0;
  // Calls of their own in place of streams, as with stock gRPC stubs.
  bool unary = false;
  // Faults, by which the checkers are tried: at this clock nothing is sent, or the contribution of
  // the clock before once more.
  std::optional<uint64_t> forget_at;
  std::optional<uint64_t> repeat_at;
  SecurityFlags security;
  LogOptions log;
};

// The file of what this rank was told. A line is in the file when Add returns, whatever becomes of
// the process.
class Told {
 public:
  explicit Told(const std::string& path)
      : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {}
  ~Told() {
    if (file_ >= 0) close(file_);
  }
  absl::Status Add(const v1::RegisterWorkerReply& life, uint64_t clock) const {
    const std::string line =
        absl::StrCat(life.incarnation(), " ", life.generation(), " ", clock, "\n");
    const bool written =
        file_ >= 0 && write(file_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
    return written ? absl::OkStatus() : absl::DataLossError("--told: cannot be written to");
  }

 private:
  const int file_;
};

// One registration, to its end.
class Life {
 public:
  Life(const Flags& flags, const Told& told, const v1::RegisterWorkerReply& registration,
       CoordinatorSession& session)
      : flags_(flags),
        told_(told),
        registration_(registration),
        session_(session),
        ledger_(registration) {}
  // The heartbeats use the client.
  ~Life() { session_.EndHeartbeats(); }

  // Until the job's end, and the leaving.
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
    if (flags_.unary) {
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
    poll(nullptr, 0, flags_.step_milliseconds);
    ledger_.Write(clock_, contribution_.span());
    if (clock_ == flags_.forget_at) std::fill_n(contribution_.data(), contribution_.size(), 0.0F);
    if (clock_ == flags_.repeat_at) ledger_.WriteAgain(clock_ - 1, contribution_.span());
    ASSIGN_OR_RETURN(const ParameterClient::Result result, Exchange());
    // The one that forgets does not see its own fault, so that the book shows it.
    if (const std::string wrong = ledger_.Check(clock_, weights_.span());
        !wrong.empty() && !flags_.forget_at.has_value() && !flags_.repeat_at.has_value()) {
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

  // The line is written as soon as the servers have said that they have the contribution.
  absl::StatusOr<ParameterClient::Result> Exchange() {
    const bool split = flags_.push_every > 0 && clock_ % flags_.push_every == 0;
    const auto pushed = split ? client_->Push(clock_, 1, contribution_.span())
                              : client_->PushPull(clock_, 1, contribution_.span(), weights_.span());
    ASSIGN_OR_RETURN(const ParameterClient::Result result, client_->Wait(pushed));
    RETURN_IF_ERROR(told_.Add(registration_, clock_));
    if (!split) return result;
    return client_->Wait(client_->Pull(clock_ + 1, weights_.span()));
  }

  const Flags& flags_;
  const Told& told_;
  const v1::RegisterWorkerReply& registration_;
  CoordinatorSession& session_;
  const Ledger ledger_;
  // Outlive the client, which may still send from them and receive into them.
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

absl::Status Run(const Flags& flags) {
  const Told told(flags.told);
  const auto channel = MakeChannel(flags.coordinator);
  const CoordinatorSession::Options process = {.address = flags.coordinator,
                                               .host = "ledger",
                                               .pid = static_cast<uint32_t>(getpid()),
                                               .nonce = RandomIdentity()};
  ASSIGN_OR_RETURN(const v1::RegisterWorkerReply offer,
                   CoordinatorSession(channel, process).FetchJob(flags.rank, kFind));
  v1::RegisterWorkerRequest request;
  request.set_rank(flags.rank);
  request.set_steps_per_epoch(1);
  *request.mutable_schema() =
      Ledger::Schema(flags.blocks, offer.job().servers().block_bytes() / sizeof(float));
  while (true) {
    CoordinatorSession session(channel, process);
    ASSIGN_OR_RETURN(const v1::RegisterWorkerReply registration, session.Register(request, kFind));
    RETURN_IF_ERROR(CheckPlaces(registration));
    const absl::Status ended = Life(flags, told, registration, session).Run();
    if (!absl::IsFailedPrecondition(ended)) return ended;
    spdlog::warn("{}; registering again", std::string(ended.message()));
  }
}

int Main(int argc, char** argv) {
  TameMalloc();
  PrepareGrpc();
  Flags flags;
  CLI::App app("A worker whose contributions can be counted in the weights.",
               "leeway-ledger-worker");
  app.add_option("--coordinator", flags.coordinator, "Address of server 0")->required();
  app.add_option("--rank", flags.rank, "Place among the workers")->required();
  app.add_option("--told", flags.told, "Append what this worker is told there")->required();
  app.add_option("--blocks", flags.blocks, "Of the model");
  app.add_option("--step-milliseconds", flags.step_milliseconds, "How long a step takes");
  app.add_option("--push-every", flags.push_every, "Push and Pull at every so many clocks");
  app.add_flag("--unary", flags.unary, "Calls of their own in place of streams");
  app.add_option("--forget-at", flags.forget_at, "A fault: send nothing at this clock");
  app.add_option("--repeat-at", flags.repeat_at, "A fault: send the clock before's again with it");
  app.add_option("--log-file", flags.log.file, "Append log lines there");
  DeclareSecurity(app, flags.security, EndOfCalls::kCalls);
  CLI11_PARSE(app, argc, argv);
  flags.log.role = absl::StrCat("ledger worker ", flags.rank);
  auto security = SettingsOf(flags.security, {}, EndOfCalls::kCalls);
  if (!SetUpLog(flags.log).ok() || !security.ok()) return kUsage;
  SetProcessSecurity(*std::move(security));
  const absl::Status status = Run(flags);
  if (status.ok()) return 0;
  spdlog::error("{}", status.ToString());
  return absl::IsDataLoss(status) ? kImpossible : 1;
}

}  // namespace
}  // namespace leeway::testing

int main(int argc, char** argv) { return leeway::testing::Main(argc, argv); }
