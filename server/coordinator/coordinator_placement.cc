// Who holds which blocks, where they have replicas.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "config/length.h"
#include "server/coordinator/coordinator_core.h"

namespace leeway {

template <typename Reply>
void CoordinatorCore::FillServers(Reply& reply) const {
  for (const uint32_t owner : Owners()) {
    reply.add_servers(servers_[owner].address);
    *reply.add_local_servers() = servers_[owner].local;
  }
  reply.set_epoch(placement_.epoch());
}
template void CoordinatorCore::FillServers(v1::RegisterWorkerReply& reply) const;
template void CoordinatorCore::FillServers(v1::HeartbeatReply& reply) const;

std::vector<uint32_t> CoordinatorCore::Owners() const {
  std::vector<uint32_t> owners;
  for (uint32_t shard = 0; shard < placement_.shards(); ++shard) {
    owners.push_back(placement_.owner(shard));
  }
  return owners;
}

bool CoordinatorCore::Survives(uint32_t server) {
  const bool running = phase_ > Phase::kGoingBack && phase_ < Phase::kShutdown;
  const uint64_t epoch = placement_.epoch();
  if (!running || !failure_.empty() || !placement_.Lose(server)) return false;
  ForgetHeld(epoch);
  return true;
}

void CoordinatorCore::Reassign(const std::string& why, Time now, std::set<uint32_t> first) {
  Emit({.name = "placement_changed",
        .message = absl::StrCat(why, "; epoch ", placement_.epoch(), ", shards owned by servers ",
                                absl::StrJoin(Owners(), ", "))});
  // Before a server acts on it: a replica that is none any more must not be taken for one.
  commands_.push_back(WriteRecord{Record(v1::JOB_STARTING)});
  // Who was to hear of an epoch before this one first hears of this one first.
  std::erase_if(first_, [this](uint32_t server) { return !servers_[server].here(); });
  first_.merge(first);
  heard_.clear();
  ++round_;
  std::set<uint32_t> later;
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    if (!first_.empty() && first_.count(i) == 0) later.insert(i);
  }
  SendPlacement(later, now);
  if (phase_ != Phase::kSaving) return;
  // Parts of the last cut were asked of who is not there any more.
  cuts_.BeginLast(last_clock_, now);
  if (!cuts_.Writing(last_clock_)) {
    commands_.push_back(SaveAll{saves_++, generation_, last_clock_, Owners(), deadline_});
  }
}

void CoordinatorCore::SendPlacement(const std::set<uint32_t>& without, Time now) {
  const v1::ConfigureRequest request = Configuration(false);
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    if (!servers_[i].here() || without.count(i) > 0) continue;
    commands_.push_back(ConfigureServer{i, round_, request, now + start_limit()});
  }
  // A shard that has changed hands holds everybody up for everybody.
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!live_[rank]) commands_.push_back(SetLive{rank, false});
  }
}

bool CoordinatorCore::HoldsAsRecorded(uint32_t server) const {
  const v1::CoordinatorRecord& before = *options_.before;
  const int index = static_cast<int>(server);
  // Another process of the index may hold what it had once.
  return servers_[server].held_generation == before.generation() &&
         index < before.server_nonces_size() &&
         servers_[server].nonce == before.server_nonces(index);
}

bool CoordinatorCore::TakeUp(Time now) {
  // What of the data is done since the newest cut nobody knows.
  if (leases_) return false;
  // Some have been told of another generation.
  if (round_ > 0) return false;
  const bool state_lost = sync() && cut_every_ > 0 && KeepsWorkerState(options_.job);
  // Which contributions a clock is made of may have been said to some shards and not to others.
  if (!options_.before || !replicated() || began_ || state_lost || commits_sets_) return false;
  Placement trial = placement_;
  std::vector<uint32_t> lost;
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    if (HoldsAsRecorded(i)) continue;
    if (!trial.Lose(i)) return false;
    lost.push_back(i);
  }
  for (const uint32_t server : lost) {
    if (servers_.Wanted(server) && servers_[server].here()) trial.Join(server);
  }
  placement_ = trial;
  generation_ = options_.before->generation();
  Begin(now);
  Reassign("the coordinator was started again", now);
  return true;
}

void CoordinatorCore::TakeSynced(const v1::ServerHeartbeatRequest& request, Time now) {
  // At the end the record says how the job has ended, and stays as it is.
  const bool open = phase_ > Phase::kGoingBack && phase_ < Phase::kShutdown;
  if (!open || request.generation() != generation_) return;
  bool news = false;
  for (const v1::SyncedShard& synced : request.synced()) {
    const bool owns =
        synced.shard() < placement_.shards() && placement_.owner(synced.shard()) == request.index();
    news |= owns && placement_.SetSynced(synced.shard(), synced.since_epoch());
  }
  if (!news) return;
  // What follows from it has a record of its own.
  commands_.push_back(WriteRecord{.record = Record(v1::JOB_STARTING), .awaited = false});
  if (placement_.whole() && !resizing_) Emit({.name = "replicas_synced"});
  Rebalance(now);
}

}  // namespace leeway
