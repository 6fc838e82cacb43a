#include "bench/bench_pair.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/base/percentiles_json.h"
#include "bench/leeway_transfer.h"
#include "bench/ping.h"
#include "bench/raw/raw_ring.h"
#include "bench/raw/raw_transfer.h"
#include "common/identity.h"
#include "common/process/process_usage.h"
#include "common/rpc/transport_security.h"
#include "common/status.h"

namespace leeway {

absl::StatusOr<std::unique_ptr<BenchPair>> BenchPair::Start(
    const std::string& name, const Make& server,
    const std::function<absl::StatusOr<BenchService>(const Json& hello)>& client) {
  std::unique_ptr<BenchPair> pair(new BenchPair);
  ASSIGN_OR_RETURN(pair->server_, BenchProcess::Start(absl::StrCat(name, " server"), server));
  ASSIGN_OR_RETURN(pair->client_, BenchProcess::Start(absl::StrCat(name, " client"), [&] {
                     return client(pair->server_->hello());
                   }));
  return pair;
}

absl::StatusOr<std::unique_ptr<BenchPair>> BenchPair::Leeway(Wire wire, const std::string& codec,
                                                             const TransferPlan& plan,
                                                             const KeyFolder* keys) {
  ASSIGN_OR_RETURN(const v1::TrainingJob job, MakeBenchJob(wire, codec));
  // Each process sets its own role for TLS.
  const auto be = [keys](v1::Role role) -> absl::Status {
    if (keys == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(SecuritySettings security, keys->SettingsFor(role));
    SetProcessSecurity(std::move(security));
    return absl::OkStatus();
  };
  return Start(
      "leeway",
      [&]() -> absl::StatusOr<BenchService> {
        RETURN_IF_ERROR(be(v1::ROLE_SERVER));
        return LeewayServer(job, plan);
      },
      [&](const Json& hello) -> absl::StatusOr<BenchService> {
        RETURN_IF_ERROR(be(v1::ROLE_WORKER));
        return LeewayClient(job, plan, AddressFrom(hello));
      });
}

absl::StatusOr<std::unique_ptr<BenchPair>> BenchPair::Raw(Wire wire, const TransferPlan& plan) {
  if (wire == Wire::kShm) {
    ASSIGN_OR_RETURN(const std::shared_ptr<RawRings> rings, RawRings::Make(plan));
    ASSIGN_OR_RETURN(auto pair, Start(
                                    "raw", [&] { return RawRingServer(rings, plan); },
                                    [&](const Json&) { return RawRingClient(rings, plan); }));
    pair->resets_ = true;
    return pair;
  }
  ASSIGN_OR_RETURN(auto ends, wire == Wire::kUnix ? RawSocket::UnixPair() : RawSocket::TcpPair());
  return Start(
      "raw",
      [&] {
        // The other end is closed here, because otherwise this child would not notice that the
        // other process has ended.
        ends.first = RawSocket();
        return RawTransferServer(std::move(ends.second), plan);
      },
      [&](const Json&) {
        ends.second = RawSocket();
        return RawTransferClient(std::move(ends.first), plan);
      });
}

absl::StatusOr<std::unique_ptr<BenchPair>> BenchPair::Ping(Wire wire) {
  // The name does not begin like Leeway's own, so Leeway does not tune these sockets
  // (common/rpc/local_sockets.h).
  const std::string address = wire == Wire::kUnix
                                  ? absl::StrCat("unix-abstract:ping-", absl::Hex(RandomIdentity()))
                                  : "127.0.0.1:0";
  return Start(
      "ping", [&] { return PingServer(address); },
      [](const Json& hello) { return PingClient(hello.value("address", "")); });
}

double BenchPair::CpuSeconds() const {
  return ProcessCpuSeconds(server_->pid()) + ProcessCpuSeconds(client_->pid());
}

absl::StatusOr<TransferRound> BenchPair::Run(double seconds) {
  if (resets_) RETURN_IF_ERROR(client_->Call({{"reset", true}}).status());
  const double cpu_before = CpuSeconds();
  RETURN_IF_ERROR(server_->Send({{"round", seconds}}));
  const Duration limit = AnswerWithin(seconds);
  ASSIGN_OR_RETURN(const Json answer, client_->Call({{"round", seconds}}, limit));
  RETURN_IF_ERROR(server_->Receive(limit).status());
  TransferRound round;
  round.messages = answer.value("messages", uint64_t{0});
  round.seconds = answer.value("seconds", 0.0);
  round.cpu_seconds = CpuSeconds() - cpu_before;
  round.travelled_bytes = answer.value("travelled_bytes", uint64_t{0});
  if (answer.contains("latency")) round.latency = answer["latency"].get<Percentiles>();
  return round;
}

uint64_t BenchPair::server_peak_bytes() const { return PeakMemoryBytes(server_->pid()); }
uint64_t BenchPair::client_peak_bytes() const { return PeakMemoryBytes(client_->pid()); }

}  // namespace leeway
