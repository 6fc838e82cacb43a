// How fast the way to server 0 is: what `auto` compression is chosen by.
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
// To the coordinator that the channel reaches; gives up after 20 s.
LinkEcho EchoOver(std::shared_ptr<grpc::Channel> channel);

// Bytes a second, both ways together (their harmonic mean): what an echo takes longer than an empty
// one, of ever more bytes until that is long enough to tell, or 4 MiB. Of each size the fastest of
// three counts, so that a connection has time to come up to its speed; a slow one is asked once.
// Infinity where the answer comes from the host `host` (common/rpc/host.h), which is asked for no
// bytes. An error of `echo`'s, or INTERNAL where what comes back is not what was sent.
absl::StatusOr<double> MeasureLink(const std::string& host, const std::function<Time()>& now,
                                   const LinkEcho& echo);

}  // namespace leeway
