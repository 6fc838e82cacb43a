#include "client/transport/link_probe.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include <grpcpp/client_context.h>

#include "absl/strings/str_cat.h"
#include "common/rpc/patient_call.h"
#include "common/status.h"
#include "leeway/v1/coordinator.grpc.pb.h"

namespace leeway {
namespace {

constexpr size_t kBytesMin = 64 << 10;
constexpr size_t kBytesMax = 4 << 20;
constexpr int kTries = 3;
// The measurement ends when an echo takes this much longer than an empty echo. The time is long
// compared with timer errors.
constexpr Duration kTells = std::chrono::milliseconds(20);
// An echo that takes this long is not repeated.
constexpr Duration kSlow = std::chrono::milliseconds(500);
// An echo that takes longer has failed.
constexpr Duration kLost = std::chrono::seconds(20);

class Probe {
 public:
  Probe(const std::function<Time()>& now, const LinkEcho& echo) : now_(now), echo_(echo) {}

  // Returns how long the fastest echo of `bytes` took.
  absl::StatusOr<Duration> Fastest(size_t bytes) {
    v1::ProbeLinkRequest request;
    request.set_payload(std::string(bytes, '\x5a'));
    Duration fastest = Duration::max();
    for (int i = 0; i < kTries; ++i) {
      const Time began = now_();
      ASSIGN_OR_RETURN(const v1::ProbeLinkReply reply, echo_(request));
      const Duration took = now_() - began;
      if (reply.payload().size() != bytes) {
        return absl::InternalError(absl::StrCat("the coordinator sent ", reply.payload().size(),
                                                " of the ", bytes, " bytes of the probe back"));
      }
      host_ = reply.host();
      fastest = std::min(fastest, took);
      if (took > kSlow) break;
    }
    return fastest;
  }
  // The host that answered last.
  const std::string& host() const { return host_; }

 private:
  const std::function<Time()>& now_;
  const LinkEcho& echo_;
  std::string host_;
};

}  // namespace

LinkEcho EchoOver(std::shared_ptr<grpc::Channel> channel) {
  return [stub = std::shared_ptr<v1::Coordinator::Stub>(v1::Coordinator::NewStub(channel))](
             const v1::ProbeLinkRequest& request) -> absl::StatusOr<v1::ProbeLinkReply> {
    v1::ProbeLinkReply reply;
    const auto pause = [](Duration duration) {
      std::this_thread::sleep_for(duration);
      return true;
    };
    RETURN_IF_ERROR(CallPatiently(
        {.attempt_max = kLost, .total = kLost, .pause = pause},
        [&](grpc::ClientContext& context) { return stub->ProbeLink(&context, request, &reply); }));
    return reply;
  };
}

absl::StatusOr<double> MeasureLink(const std::string& host, const std::function<Time()>& now,
                                   const LinkEcho& echo) {
  Probe probe(now, echo);
  ASSIGN_OR_RETURN(const Duration empty, probe.Fastest(0));
  if (!host.empty() && probe.host() == host) return std::numeric_limits<double>::infinity();
  size_t bytes = kBytesMin;
  while (true) {
    ASSIGN_OR_RETURN(const Duration whole, probe.Fastest(bytes));
    const Duration moving = std::max<Duration>(whole - empty, std::chrono::microseconds(1));
    if (moving >= kTells || bytes >= kBytesMax) {
      return 2 * static_cast<double>(bytes) / Seconds(moving);
    }
    bytes *= 4;
  }
}

}  // namespace leeway
