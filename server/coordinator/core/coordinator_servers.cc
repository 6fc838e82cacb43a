// Servers register, live and leave.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "config/topology.h"
#include "server/coordinator/core/coordinator_core.h"
#include "server/coordinator/core/phrases.h"

namespace leeway {

absl::StatusOr<v1::RegisterServerReply> CoordinatorCore::RegisterServer(
    const v1::RegisterServerRequest& request, Time now) {
  RETURN_IF_ERROR(CheckMessage(request));
  const CoordinatorOptions& options = facts().options();
  const std::string who =
      absl::StrCat(ServerName(facts().job(), request.index()), " at ", request.address());
  RETURN_IF_ERROR(facts().CheckPeer(request.build(), who));
  RETURN_IF_ERROR(CheckProcess(request, who));
  RETURN_IF_ERROR(fleet_.Check(request, workers_.ranks()));
  // The server belongs to another run. That run is over, and its coordinator had this address.
  if (request.job() != 0 && request.job() != options.job_id) {
    return absl::AlreadyExistsError(absl::StrCat(who, " belongs to job ", absl::Hex(request.job()),
                                                 ", but this is job ", absl::Hex(options.job_id)));
  }
  if (fleet_.processes().Past(request)) {
    return absl::AbortedError(absl::StrCat(who, " has been replaced by the process at ",
                                           fleet_.processes()[request.index()].address,
                                           "; this process must stop"));
  }
  // The registration takes effect only when its process sends another message. The process may have
  // died since it sent the registration, and the present holder of the index may be its successor.
  if (!fleet_.Known(request) && fleet_.table()[request.index()].here()) {
    fleet_.Claim(request);
  } else {
    RETURN_IF_ERROR(TakeProcess(request, now));
  }
  v1::RegisterServerReply reply;
  *reply.mutable_job() = options.job;
  reply.set_job_id(options.job_id);
  reply.set_run_dir(options.run_dir);
  return reply;
}

absl::Status CoordinatorCore::CheckProcess(const v1::RegisterServerRequest& request,
                                           const std::string& who) const {
  const v1::TrainingJob& job = facts().job();
  const bool of_worker = WorkersHoldBlocks(job) && request.index() >= FirstHolderOf(job);
  if (request.of_worker() == of_worker) return absl::OkStatus();
  if (of_worker) {
    return absl::InvalidArgumentError(
        absl::StrCat(who,
                     " is a process of its own, but this job's workers hold the blocks "
                     "(topology.type: ",
                     TopologyType(job), "): start workers only"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(who, " is in a worker's process, but this server must be a process of its own"));
}

absl::Status CoordinatorCore::TakeProcess(const v1::RegisterServerRequest& request, Time now) {
  const uint32_t index = request.index();
  const std::string who = absl::StrCat(ServerName(facts().job(), index), " at ", request.address());
  RETURN_IF_ERROR(CheckWanted(request, who, now));
  if (fleet_.Known(request)) {
    Return(index, now);
    Advance(now);
    return absl::OkStatus();
  }
  const bool survives = Survives(index);
  const std::string why = absl::StrCat(who, " is a new process");
  if (!survives) {
    GoBack(
        absl::StrCat(why, ": the blocks that ", ServerName(facts().job(), index), " held are lost"),
        now);
  }
  if (!survives && life_.phase() > Phase::kGoingBack) return RefusedAtTheEnd();
  fleet_.Register(request, now);
  shards_.Undrain(index);
  rollout_.Forget(index);
  rollout_.BreakOff();
  if (survives) {
    if (fleet_.table().Wanted(index)) shards_.Join(index);
    Reassign(why, now);
  }
  Advance(now);
  return absl::OkStatus();
}

absl::Status CoordinatorCore::CheckWanted(const v1::RegisterServerRequest& request,
                                          const std::string& who, Time now) {
  const uint32_t index = request.index();
  const ServerTable& servers = fleet_.table();
  if (servers.Wanted(index) || fleet_.Known(request)) return absl::OkStatus();
  const bool starting = life_.phase() == Phase::kStarting;
  if (starting && shards_.places().Holds(index)) return absl::OkStatus();
  const ServerEntry& entry = servers[index];
  const bool before = entry.expected || entry.state == ServerState::kRemoved || request.job() != 0;
  if (entry.here()) {
    const std::string why = absl::StrCat(who, " is a new process");
    const bool survives = Survives(index);
    if (!survives) GoBack(why, now);
    // RemoveIdle comes first, so that no placement waits for an answer of the removed server.
    RemoveIdle();
    if (survives) Reassign(why, now);
  }
  if (GrowFor(request, now)) return absl::OkStatus();
  if (before) {
    return absl::AlreadyExistsError(absl::StrCat("the job goes on without server ", index));
  }
  return absl::UnavailableError(absl::StrCat(who, " is not needed: the job has ", servers.wanted(),
                                             " servers; `leeway resize ... --servers ", index + 1,
                                             "` changes that"));
}

absl::StatusOr<v1::ServerHeartbeatReply> CoordinatorCore::ServerHeartbeat(
    const v1::ServerHeartbeatRequest& request, Time now) {
  RETURN_IF_ERROR(facts().CheckJob(request.job()));
  RETURN_IF_ERROR(CheckMessage(request, Limits()));
  const uint32_t index = request.index();
  const ServerTable& servers = fleet_.table();
  if (index >= servers.size() || servers[index].state == ServerState::kWaiting) {
    return absl::FailedPreconditionError(
        absl::StrCat("the coordinator does not know server ", index, ": it must register first"));
  }
  if (servers[index].state == ServerState::kRemoved) {
    return absl::AlreadyExistsError(absl::StrCat("the job goes on without server ", index));
  }
  if (!fleet_.processes().Holds(index, request.nonce())) {
    const auto claim = fleet_.TakeClaim(index, request.nonce());
    if (!claim) {
      return absl::FailedPreconditionError(
          absl::StrCat("the coordinator has another process as server ", index,
                       ": this process must register again"));
    }
    // Another process may have come since the registration.
    RETURN_IF_ERROR(fleet_.Check(*claim, workers_.ranks()));
    RETURN_IF_ERROR(TakeProcess(*claim, now));
  }
  fleet_.TakeHeartbeat(index, request.load());
  Return(index, now);
  TakeSynced(request, now);
  return ServerReply(request.wants_incarnations());
}

v1::ServerHeartbeatReply CoordinatorCore::ServerReply(bool wants_incarnations) const {
  v1::ServerHeartbeatReply reply;
  // Epoch 0 is never valid, so it renews no lease. The server's lease must not be renewed if the
  // epoch is past or not on record.
  reply.set_epoch(OnRecord() ? shards_.places().epoch() : 0);
  if (!wants_incarnations) return reply;
  // If an incarnation is not on record, a later coordinator may give it out again.
  for (const uint64_t incarnation : workers_.ranks().Incarnations()) {
    reply.add_incarnations(record_.HasIncarnation(incarnation) ? incarnation : 0);
  }
  return reply;
}

void CoordinatorCore::Return(uint32_t server, Time now) {
  if (!fleet_.Seen(server, now)) return;
  rollout_.BreakOff();
  // Other servers may or may not hold this server's shards by now. In both cases this server has
  // missed all commands while it was lost.
  const bool holds = life_.under_way() && shards_.places().Holds(server);
  const bool joins = life_.under_way() && fleet_.table().Wanted(server) && shards_.Join(server);
  if (holds) {
    workers_.TellAgain(true);
    sets_.TellAgain(life_.generation());
    shards_.Renew();
  }
  if (holds || joins) Reassign(absl::StrCat(ServerName(facts().job(), server), " is back"), now);
  Advance(now);
}

void CoordinatorCore::ExpireServers(Time now) {
  const std::vector<uint32_t> lost = fleet_.Expire(now);
  if (lost.empty() || life_.phase() >= Phase::kShutdown) return;
  for (const uint32_t server : lost) fleet_.Disconnect(server);
  const std::string why = absl::StrCat(
      ListOfServers(facts().job(), lost), " at ", fleet_.processes()[lost.front()].address,
      " gave no sign of life for ", Seconds(facts().lease()), " s");
  if (!life_.under_way() || stop_.failed()) {
    GoBack(why, now);
    return rollout_.BreakOff();
  }
  // A silent server need not be dead. It may still hold shards that no other server holds. The job
  // could not go back without that server, either. So the job waits until the server returns, or
  // until another process takes its place.
  const auto moved =
      std::count_if(lost.begin(), lost.end(), [this](uint32_t server) { return Survives(server); });
  if (moved > 0) Reassign(why, now);
}

void CoordinatorCore::GiveUpHolders(Time now) {
  const ServerTable& servers = fleet_.table();
  const Duration most = facts().lease() + facts().start_limit();
  for (uint32_t i = 0; i < servers.size() && life_.under_way(); ++i) {
    const bool held = servers[i].state == ServerState::kLost && shards_.places().Holds(i);
    if (!held || now - servers[i].seen <= most) continue;
    const std::string why = absl::StrCat(
        ServerName(facts().job(), i), " at ", fleet_.processes()[i].address,
        " gave no sign of life for ", Seconds(most), " s, and no other server has its blocks");
    if (!servers.Wanted(i)) return GoBack(why, now);
    return Abort(absl::StrCat(why, "; resume the job from its newest checkpoint"), now);
  }
}

void CoordinatorCore::Take(const ServerGone& gone, Time now) {
  const uint32_t server = gone.server;
  if (!fleet_.MayBeGone(server, gone.nonce) || life_.phase() >= Phase::kShutdown) return;
  // If blocks would be lost, the core waits, because the process may only seem gone, and the job
  // should not go back without need.
  if (!Survives(server)) return;
  fleet_.TakeForGone(server);
  Reassign(
      absl::StrCat(ServerName(facts().job(), server), " at ", fleet_.processes()[server].address,
                   " is gone: its connection was cut, and nobody listens there"),
      now);
  Advance(now);
}

}  // namespace leeway
