#include "launcher/doctor/peer.h"

#include <utility>

#include "bench/base/transfer.h"
#include "bench/raw/raw_socket.h"
#include "bench/raw/raw_transfer.h"
#include "common/clock.h"
#include "common/status.h"

namespace leeway {
namespace {

// The first header of a connection says what to transfer. Its field `kind` is kMethod plus the
// method, `block` is the number of blocks, and `clock` is the number of bytes of a message.
constexpr uint32_t kMethod = 0x6c770000;
constexpr uint64_t kMessageBytesMax = 16 << 20;
constexpr uint64_t kTotalBytesMax = 256 << 20;

absl::StatusOr<TransferPlan> PlanFrom(const RawHeader& header) {
  const uint32_t method = header.kind - kMethod;
  const uint64_t bytes = header.clock;
  const bool good = header.kind >= kMethod &&
                    method <= static_cast<uint32_t>(TransferMethod::kPushPull) && bytes > 0 &&
                    bytes <= kMessageBytesMax && bytes % 64 == 0 && header.block > 0 &&
                    header.block <= kTotalBytesMax / bytes;
  if (!good)
    return absl::InvalidArgumentError("the peer does not use the protocol of leeway doctor");
  return TransferPlan{.method = static_cast<TransferMethod>(method),
                      .message_bytes = bytes,
                      .blocks = header.block};
}

absl::Status ServeOne(RawSocket socket) {
  RawHeader header;
  RETURN_IF_ERROR(socket.Receive(header, {}));
  ASSIGN_OR_RETURN(const TransferPlan plan, PlanFrom(header));
  const BenchService server = RawTransferServer(std::move(socket), plan);
  return server.handle({}).status();
}

struct Measured {
  double gigabytes_per_second = 0;
  double seconds_per_message = 0;
};

absl::StatusOr<Measured> MeasurePeer(const std::string& address, TransferMethod method,
                                     uint64_t message_bytes, uint32_t window, double seconds,
                                     Duration patience) {
  const TransferPlan plan{
      .method = method, .message_bytes = message_bytes, .blocks = 16, .window = window};
  ASSIGN_OR_RETURN(RawSocket socket, RawSocket::Connect(address, patience));
  RETURN_IF_ERROR(socket.Send({.kind = kMethod + static_cast<uint32_t>(method),
                               .block = plan.blocks,
                               .clock = plan.message_bytes},
                              {}));
  const BenchService client = RawTransferClient(std::move(socket), plan);
  ASSIGN_OR_RETURN(const Json answer, client.handle({{"round", seconds}}));
  const double messages = answer.value("messages", 0.0);
  const double took = answer.value("seconds", 0.0);
  if (messages <= 0 || took <= 0)
    return absl::UnavailableError("the peer's answer has no measurements");
  return Measured{
      .gigabytes_per_second = 1e-9 * messages * static_cast<double>(plan.bytes_moved()) / took,
      .seconds_per_message = took / messages};
}

}  // namespace

Json PeerRatesJson(const PeerRates& rates) {
  return {{"up_gigabytes_per_second", rates.up_gigabytes_per_second},
          {"down_gigabytes_per_second", rates.down_gigabytes_per_second},
          {"both_gigabytes_per_second", rates.both_gigabytes_per_second},
          {"round_trip_seconds", rates.round_trip_seconds}};
}

PeerRates PeerRatesFrom(const Json& json) {
  return {.up_gigabytes_per_second = json.value("up_gigabytes_per_second", 0.0),
          .down_gigabytes_per_second = json.value("down_gigabytes_per_second", 0.0),
          .both_gigabytes_per_second = json.value("both_gigabytes_per_second", 0.0),
          .round_trip_seconds = json.value("round_trip_seconds", 0.0)};
}

absl::Status ServePeers(const std::string& address, uint64_t connections,
                        const std::function<void(int port)>& listening, Duration patience) {
  int port = 0;
  ASSIGN_OR_RETURN(const Descriptor listener, ListenTcp(address, &port));
  listening(port);
  absl::Status last;
  for (uint64_t served = 0; connections == 0 || served < connections; ++served) {
    ASSIGN_OR_RETURN(RawSocket socket, AcceptTcp(listener, patience));
    // The listening doctor survives peers that disconnect or send nonsense.
    last = ServeOne(std::move(socket));
  }
  return last;
}

absl::StatusOr<PeerRates> MeasurePeer(const std::string& address, double seconds_each,
                                      Duration patience) {
  constexpr uint64_t kMessage = 1 << 20;
  constexpr uint32_t kWindow = 8;
  PeerRates rates;
  const auto rate = [&](TransferMethod method, double& target) -> absl::Status {
    ASSIGN_OR_RETURN(const Measured measured,
                     MeasurePeer(address, method, kMessage, kWindow, seconds_each, patience));
    target = measured.gigabytes_per_second;
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(rate(TransferMethod::kPush, rates.up_gigabytes_per_second));
  RETURN_IF_ERROR(rate(TransferMethod::kPull, rates.down_gigabytes_per_second));
  RETURN_IF_ERROR(rate(TransferMethod::kPushPull, rates.both_gigabytes_per_second));
  ASSIGN_OR_RETURN(const Measured small,
                   MeasurePeer(address, TransferMethod::kPushPull, 64, 1, seconds_each, patience));
  rates.round_trip_seconds = small.seconds_per_message;
  return rates;
}

}  // namespace leeway
