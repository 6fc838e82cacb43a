// Measures how fast the link to server 0 is. `auto` compression chooses by it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <grpcpp/channel.h>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// One call of Coordinator.ProbeLink.
using LinkEcho =
    std::function<absl::StatusOr<v1::ProbeLinkReply>(const v1::ProbeLinkRequest& request)>;
// Calls the coordinator that the channel reaches, and gives up after 20 s.
LinkEcho EchoOver(std::shared_ptr<grpc::Channel> channel);

// Returns bytes a second, as the harmonic mean of both directions. The measure is the extra time
// that an echo with bytes takes over an empty echo. The size grows until that time is long enough
// to tell, or to 4 MiB. For each size the fastest of three echoes counts, so that a connection has
// time to reach its speed; a slow link is asked once. If the answer comes from the host `host`
// (common/rpc/host.h), no bytes are sent and the result is infinity. Errors: those of `echo`, or
// INTERNAL if the answer differs from what was sent.
absl::StatusOr<double> MeasureLink(const std::string& host, const std::function<Time()>& now,
                                   const LinkEcho& echo);

}  // namespace leeway
