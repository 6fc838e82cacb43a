// Lets a server leave in order: other servers hold its shards before it ends. With servers.max,
// servers also come and go by themselves.
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "config/shards.h"
#include "server/coordinator/core/coordinator_core.h"

namespace leeway {

absl::StatusOr<v1::DrainServerReply> CoordinatorCore::DrainServer(
    const v1::DrainServerRequest& request, Time now) {
  RETURN_IF_ERROR(facts().CheckJob(request.job()));
  const uint32_t index = request.index();
  const ServerTable& servers = fleet_.table();
  if (index >= servers.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("index: is ", index, ", must be at most ", servers.size() - 1));
  }
  v1::DrainServerReply reply;
  if (servers[index].state == ServerState::kRemoved) {
    reply.set_released(true);
    return reply;
  }
  if (!servers[index].here() || !fleet_.processes().Holds(index, request.nonce())) {
    return absl::UnavailableError(absl::StrCat("the calling process is not registered as server ",
                                               index, ": it must register first"));
  }
  if (const std::string why = CannotDrain(index); !why.empty()) {
    reply.set_released(true);
    reply.set_message(why);
    return reply;
  }
  if (!servers[index].draining) {
    fleet_.Drain(index);
    shards_.Drain(index);
  }
  Rebalance(now);
  LetGoOfDrained(now);
  reply.set_released(Released(index));
  if (!reply.released()) reply.set_message(StatusMessage(now));
  return reply;
}

std::string CoordinatorCore::CannotDrain(uint32_t server) const {
  if (!life_.began()) return "the job has not begun yet";
  if (life_.phase() == Phase::kStarting) return "the coordinator was started again";
  if (life_.phase() == Phase::kGoingBack) return "the job is going back to a checkpoint";
  const ServerTable& servers = fleet_.table();
  if (model_.BlockStateBytes() > kStateBytesMax) {
    return "a block with all of its state is too large for one message (servers.block_bytes)";
  }
  for (uint32_t i = 0; i < servers.wanted(); ++i) {
    if (i != server && servers[i].here() && !servers[i].draining) return "";
  }
  return "the job has no other server";
}

bool CoordinatorCore::Released(uint32_t server) const {
  const Placement& places = shards_.places();
  return !places.Holds(server) && !places.Filling() && !rollout_.waits() && OnRecord();
}

void CoordinatorCore::LetGoOfDrained(Time now) {
  if (facts().job().servers().max() == 0) return;
  const ServerTable& servers = fleet_.table();
  const auto let_go = [&](uint32_t index) {
    return servers[index].draining && !shards_.places().Holds(index);
  };
  uint32_t wanted = servers.wanted();
  while (wanted > ServersMin(facts().job()) && let_go(wanted - 1)) --wanted;
  if (wanted < servers.wanted()) WantServers(wanted, now);
}

bool CoordinatorCore::GrowFor(const v1::RegisterServerRequest& request, Time now) {
  const uint32_t index = request.index(), most = facts().job().servers().max();
  // A server that names a job has belonged to this job and was released, so it does not come back.
  const bool fresh = request.job() == 0;
  if (!fresh || index >= most || index != fleet_.table().wanted()) return false;
  if (!CheckResize(index + 1, now).ok()) return false;
  WantServers(index + 1, now);
  return true;
}

}  // namespace leeway
