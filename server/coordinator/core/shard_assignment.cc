#include "server/coordinator/core/shard_assignment.h"

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "config/topology.h"
#include "server/coordinator/core/phrases.h"

namespace leeway {
namespace {

Placement StartPlacement(const JobFacts& facts) {
  const auto& before = facts.options().before;
  const Placement::Homes homes{.first = FirstHolderOf(facts.job()),
                               .end = facts.start_servers(),
                               .replicas = facts.job().servers().replicas()};
  const bool known =
      before && before->placement().shards_size() == static_cast<int>(facts.shards());
  return known ? Placement(homes, before->placement()) : Placement(facts.shards(), homes);
}

template <typename Reply>
void FillServers(const ServerProcesses& processes, const std::vector<uint32_t>& owners,
                 uint64_t epoch, Reply& reply) {
  for (const uint32_t owner : owners) {
    reply.add_servers(processes[owner].address);
    *reply.add_local_servers() = processes[owner].local;
  }
  reply.set_epoch(epoch);
}

}  // namespace

ShardAssignment::ShardAssignment(const JobFacts& facts, const ServerFleet& fleet,
                                 Commands& commands)
    : facts_(facts), fleet_(fleet), commands_(commands), placement_(StartPlacement(facts)) {}

std::vector<uint32_t> ShardAssignment::Owners() const {
  std::vector<uint32_t> owners;
  for (uint32_t shard = 0; shard < placement_.shards(); ++shard) {
    owners.push_back(placement_.owner(shard));
  }
  return owners;
}

std::string ShardAssignment::ShardName(uint32_t shard) const {
  return absl::StrCat("shard ", shard, " (server ", placement_.owner(shard), ")");
}

void ShardAssignment::Fill(v1::RegisterWorkerReply& reply) const {
  FillServers(fleet_.processes(), Owners(), placement_.epoch(), reply);
}

void ShardAssignment::Fill(v1::HeartbeatReply& reply) const {
  FillServers(fleet_.processes(), Owners(), placement_.epoch(), reply);
}

void ShardAssignment::Reset() { placement_.Reset(fleet_.table().Here()); }

bool ShardAssignment::HoldsAsRecorded(uint32_t server) const {
  const v1::CoordinatorRecord& before = *facts_.options().before;
  const ProcessEntry& process = fleet_.processes()[server];
  const int index = static_cast<int>(server);
  // The nonce is compared, too, because another process may have this index now.
  return process.held_generation == before.generation() && index < before.server_nonces_size() &&
         process.nonce == before.server_nonces(index);
}

bool ShardAssignment::TakeUp() {
  const ServerTable& servers = fleet_.table();
  Placement trial = placement_;
  std::vector<uint32_t> lost;
  for (uint32_t i = 0; i < servers.size(); ++i) {
    if (HoldsAsRecorded(i)) continue;
    if (!trial.Lose(i)) return false;
    lost.push_back(i);
  }
  for (const uint32_t server : lost) {
    if (servers.Wanted(server) && servers[server].here()) trial.Join(server);
  }
  placement_ = trial;
  return true;
}

bool ShardAssignment::TakeSynced(const v1::ServerHeartbeatRequest& request) {
  bool news = false;
  for (const v1::SyncedShard& synced : request.synced()) {
    const bool owns =
        synced.shard() < placement_.shards() && placement_.owner(synced.shard()) == request.index();
    news |= owns && placement_.SetSynced(synced.shard(), synced.since_epoch());
  }
  return news;
}

void ShardAssignment::Resize(uint32_t servers) {
  placement_.Want(servers);
  resizing_ = true;
}

void ShardAssignment::GoOnResizing() {
  const auto& before = facts_.options().before;
  resizing_ = before && before->servers() > 0 && placement_.ToMove() > 0;
}

void ShardAssignment::FinishResizing() {
  const ServerTable& servers = fleet_.table();
  if (!resizing_ || placement_.ToMove() > 0 || !servers.Absent().empty()) return;
  resizing_ = false;
  commands_.Emit({.name = "resized", .message = Counted(servers.wanted(), "server")});
}

std::string ShardAssignment::ResizeMessage() const {
  const ServerTable& servers = fleet_.table();
  const uint32_t shards = resizing_ ? placement_.ToMove() : 0;
  const std::string moving =
      shards == 0 ? ""
                  : absl::StrCat(shards, shards == 1 ? " shard" : " shards", " to move, to ",
                                 servers.wanted(), servers.wanted() == 1 ? " server" : " servers");
  const std::string absent = resizing_ ? ListOf("server", servers.Absent()) : "";
  return And(moving, absent.empty() ? "" : "waiting for " + absent);
}

}  // namespace leeway
