// Measures the speed of the link to server 0, by which `auto` compression chooses.
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
// Returns a function that calls the channel's coordinator, and gives up after 20 s.
LinkEcho EchoOver(std::shared_ptr<grpc::Channel> channel);

// Returns the link's bytes a second, as the harmonic mean of both directions. Computes the rate
// from the extra time that an echo with bytes takes, compared with an empty echo. The number of
// bytes grows until that time is long enough to measure, or to 4 MiB. For each size the fastest of
// three echoes counts, so that the connection has time to reach its speed. On a slow link one echo
// is enough. If the answer comes from `host` (common/rpc/host.h), no bytes are sent and the result
// is infinity. Returns the errors of `echo`, and INTERNAL if the answer differs from what was sent.
absl::StatusOr<double> MeasureLink(const std::string& host, const std::function<Time()>& now,
                                   const LinkEcho& echo);

}  // namespace leeway
