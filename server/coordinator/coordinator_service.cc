#include "server/coordinator/coordinator_service.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/address.h"
#include "common/rpc/host.h"
#include "common/service/unary_call.h"
#include "config/topology.h"
#include "server/coordinator/coordinator_host.h"
#include "server/coordinator/worker_state_streams.h"

namespace leeway {
namespace {

// The largest payload that a probe may have. While the service answers a probe, memory holds the
// payload twice.
constexpr size_t kProbeBytesMax = 4 << 20;

absl::StatusOr<v1::ProbeLinkReply> Echo(const v1::ProbeLinkRequest& request) {
  if (request.payload().size() > kProbeBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("payload: has ", request.payload().size(),
                                                   " bytes, must have at most ", kProbeBytesMax));
  }
  v1::ProbeLinkReply reply;
  reply.set_payload(request.payload());
  reply.set_host(HostIdentity());
  return reply;
}

// Fills in the network of a peer that does not name its network. A peer that connects through
// loopback or a unix socket is in the coordinator's own network. For any other peer, its address
// serves as the network's name.
template <typename Request>
absl::Status SayNetwork(const Caller&, const grpc::ServerContext& context, Request& request) {
  if (!request.network().empty()) return absl::OkStatus();
  // The peer is a string such as ipv4:10.0.0.1:4711, ipv6:%5B::1%5D:4711 or unix:PATH.
  const std::vector<std::string> parts = absl::StrSplit(context.peer(), absl::MaxSplits(':', 1));
  std::string address = parts.size() == 2 ? parts[1] : "";
  address = absl::StrReplaceAll(address, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  const auto split = SplitAddress(address);
  const bool here =
      !absl::StartsWith(parts[0], "ip") || (split.ok() && ReachOf(*split) == Reach::kOwnHost);
  request.set_network(here || !split.ok() ? NetworkIdentity() : split->host);
  return absl::OkStatus();
}

// Checks a server that a peer registers. A peer may register only the server of its rank, in a job
// whose workers hold the blocks.
absl::Status CheckServer(const v1::TrainingJob& job, const Caller& caller,
                         const grpc::ServerContext& context, v1::RegisterServerRequest& request) {
  const bool worker_s = WorkersHoldBlocks(job) && request.index() >= FirstHolderOf(job);
  if (caller.role == v1::ROLE_PEER && !worker_s) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the caller's role is peer, but server ", request.index(),
        " of this job does not belong to a worker (topology.type: ", TopologyType(job), ")"));
  }
  if (caller.rank && request.index() != ServerOfRank(*caller.rank)) {
    return absl::PermissionDeniedError(
        absl::StrCat("the caller's certificate is for rank ", *caller.rank, ", which is server ",
                     ServerOfRank(*caller.rank), ", not server ", request.index()));
  }
  return SayNetwork(caller, context, request);
}

}  // namespace

void CoordinatorService::Await(ServerQueue* queue) {
  AwaitMembership(queue);
  AwaitCheckpoints(queue);
  AwaitStatus(queue);
}

void CoordinatorService::AwaitMembership(ServerQueue* queue) {
  ServeUnary<v1::RegisterServerRequest, v1::RegisterServerReply>(
      queue, this, "leeway.v1.Coordinator.RegisterServer",
      [this](const v1::RegisterServerRequest& request, auto done) {
        done(host_.Ask(
            [&](CoordinatorCore& core, Time now) { return core.RegisterServer(request, now); }));
      },
      [&job = host_.job()](const Caller& caller, const grpc::ServerContext& context,
                           v1::RegisterServerRequest& request) {
        return CheckServer(job, caller, context, request);
      });
  ServeUnary<v1::RegisterWorkerRequest, v1::RegisterWorkerReply>(
      queue, this, "leeway.v1.Coordinator.RegisterWorker",
      [this](const v1::RegisterWorkerRequest& request, auto done) {
        done(host_.Ask(
            [&](CoordinatorCore& core, Time now) { return core.RegisterWorker(request, now); }));
      },
      SayNetwork<v1::RegisterWorkerRequest>);
  ServeUnary<v1::ProbeLinkRequest, v1::ProbeLinkReply>(
      queue, this, "leeway.v1.Coordinator.ProbeLink",
      [](const v1::ProbeLinkRequest& request, auto done) { done(Echo(request)); });
  ServeUnary<v1::HeartbeatRequest, v1::HeartbeatReply>(
      queue, this, "leeway.v1.Coordinator.Heartbeat",
      [this](const v1::HeartbeatRequest& request, auto done) {
        done(host_.Ask(
            [&](CoordinatorCore& core, Time now) { return core.Heartbeat(request, now); }));
      });
  ServeUnary<v1::ServerHeartbeatRequest, v1::ServerHeartbeatReply>(
      queue, this, "leeway.v1.Coordinator.ServerHeartbeat",
      [this](const v1::ServerHeartbeatRequest& request, auto done) {
        done(host_.Ask(
            [&](CoordinatorCore& core, Time now) { return core.ServerHeartbeat(request, now); }));
      });
  ServeUnary<v1::LeaveRequest, v1::LeaveReply>(
      queue, this, "leeway.v1.Coordinator.Leave",
      [this](const v1::LeaveRequest& request, auto done) {
        done(host_.Ask([&](CoordinatorCore& core, Time now) { return core.Leave(request, now); }));
      });
}

void CoordinatorService::AwaitCheckpoints(ServerQueue* queue) {
  ServeUnary<v1::ShardSavedRequest, v1::ShardSavedReply>(
      queue, this, "leeway.v1.Coordinator.ShardSaved",
      [this](const v1::ShardSavedRequest& request, auto done) {
        done(Reply<v1::ShardSavedReply>(host_.Ask(
            [&](CoordinatorCore& core, Time now) { return core.ShardSaved(request, now); })));
      });
  ServeUnary<v1::ContributionsHeldRequest, v1::ContributionsHeldReply>(
      queue, this, "leeway.v1.Coordinator.ContributionsHeld",
      [this](const v1::ContributionsHeldRequest& request, auto done) {
        done(Reply<v1::ContributionsHeldReply>(host_.Ask([&](CoordinatorCore& core, Time now) {
          return core.ContributionsHeld(request, now);
        })));
      });
  AwaitWorkerStates(host_, *this, queue);
}

void CoordinatorService::AwaitStatus(ServerQueue* queue) {
  ServeUnary<v1::LeaseDataRequest, v1::LeaseDataReply>(
      queue, this, "leeway.v1.Coordinator.LeaseData",
      [this](const v1::LeaseDataRequest& request, auto done) {
        done(host_.Ask(
            [&](CoordinatorCore& core, Time now) { return core.LeaseData(request, now); }));
      });
  ServeUnary<v1::StopAtRequest, v1::StopAtReply>(
      queue, this, "leeway.v1.Coordinator.StopAt",
      [this](const v1::StopAtRequest& request, auto done) {
        done(host_.Ask([&](CoordinatorCore& core, Time now) { return core.StopAt(request, now); }));
      });
  ServeUnary<v1::GetJobStatusRequest, v1::JobStatus>(
      queue, this, "leeway.v1.Coordinator.GetJobStatus",
      [this](const v1::GetJobStatusRequest&, auto done) { done(host_.Status()); });
  ServeUnary<v1::ResizeServersRequest, v1::ResizeServersReply>(
      queue, this, "leeway.v1.Coordinator.ResizeServers",
      [this](const v1::ResizeServersRequest& request, auto done) {
        done(host_.Ask(
            [&](CoordinatorCore& core, Time now) { return core.ResizeServers(request, now); }));
      });
  ServeUnary<v1::DrainServerRequest, v1::DrainServerReply>(
      queue, this, "leeway.v1.Coordinator.DrainServer",
      [this](const v1::DrainServerRequest& request, auto done) {
        done(host_.Ask(
            [&](CoordinatorCore& core, Time now) { return core.DrainServer(request, now); }));
      });
  ServeUnary<v1::StopJobRequest, v1::StopJobReply>(
      queue, this, "leeway.v1.Coordinator.StopJob",
      [this](const v1::StopJobRequest& request, auto done) {
        host_.StopJob(request.reason());
        done(v1::StopJobReply());
      });
}

}  // namespace leeway
