#include "server/coordinator/core/placement.h"

#include <algorithm>
#include <utility>

namespace leeway {

Placement::Placement(uint32_t shards, const Homes& homes) : homes_(homes) {
  for (uint32_t shard = 0; shard < shards; ++shard) places_.add_shards();
  std::set<uint32_t> all;
  for (uint32_t server = homes.first; server < homes.end; ++server) all.insert(server);
  Reset(all);
}

Placement::Placement(const Homes& homes, v1::Placement recorded)
    : homes_(homes), places_(std::move(recorded)), owner_since_(shards()) {}

void Placement::SetReplica(uint32_t shard, uint32_t server) {
  At(shard).set_replica(server);
  At(shard).set_synced(false);
  At(shard).set_since_epoch(epoch());
}

void Placement::ClearReplica(uint32_t shard) {
  At(shard).clear_replica();
  At(shard).set_synced(false);
  At(shard).set_since_epoch(0);
}

void Placement::SetOwner(uint32_t shard, uint32_t server) {
  At(shard).set_owner(server);
  owner_since_[shard] = epoch();
}

std::optional<uint32_t> Placement::NextUndrained(uint32_t nth) const {
  for (uint32_t i = 0; i < size(); ++i) {
    const uint32_t server = homes_.first + (nth + i) % size();
    if (drained_.count(server) == 0) return server;
  }
  return std::nullopt;
}

uint32_t Placement::HomeOf(uint32_t shard) const {
  return NextUndrained(shard % size()).value_or(At(shard).owner());
}

std::optional<uint32_t> Placement::SecondOf(uint32_t shard) const {
  if (homes_.replicas < 2 || size() < 2) return std::nullopt;
  const uint32_t home = HomeOf(shard);
  const std::optional<uint32_t> second = NextUndrained(home + 1 - homes_.first);
  return second == home ? std::nullopt : second;
}

void Placement::Reset(const std::set<uint32_t>& here) {
  const std::vector<uint32_t> servers(here.lower_bound(homes_.first), here.end());
  places_.set_epoch(places_.epoch() + 1);
  owner_since_.assign(shards(), 0);
  for (uint32_t shard = 0; shard < shards(); ++shard) {
    At(shard).Clear();
    At(shard).set_owner(servers[shard % servers.size()]);
    if (homes_.replicas > 1 && servers.size() > 1) {
      SetReplica(shard, servers[(shard + 1) % servers.size()]);
    }
  }
}

bool Placement::Lose(uint32_t server) {
  for (const v1::ShardPlace& place : places_.shards()) {
    if (place.owner() == server && !(place.has_replica() && place.synced())) return false;
  }
  places_.set_epoch(places_.epoch() + 1);
  for (uint32_t shard = 0; shard < shards(); ++shard) {
    v1::ShardPlace& place = At(shard);
    const bool owned = place.owner() == server;
    const bool replicated = place.has_replica() && place.replica() == server;
    if (!owned && !replicated) continue;
    if (owned) SetOwner(shard, place.replica());
    ClearReplica(shard);
  }
  return true;
}

bool Placement::Join(uint32_t server) {
  bool news = false;
  if (homes_.replicas < 2 || server < homes_.first) return news;
  for (uint32_t shard = 0; shard < shards(); ++shard) {
    if (At(shard).has_replica() || At(shard).owner() == server) continue;
    if (!std::exchange(news, true)) places_.set_epoch(places_.epoch() + 1);
    SetReplica(shard, server);
  }
  return news;
}

bool Placement::SetSynced(uint32_t shard, uint64_t since_epoch) {
  if (shard >= shards()) return false;
  v1::ShardPlace& place = At(shard);
  if (!place.has_replica() || place.synced() || place.since_epoch() != since_epoch) return false;
  place.set_synced(true);
  return true;
}

// ---- moving

Placement::Moves Placement::Rebalance(const std::set<uint32_t>& here) {
  Moves moves;
  if (Filling()) return moves;
  // The changes below belong to a new epoch. If nothing changes, the epoch number is restored.
  places_.set_epoch(epoch() + 1);
  for (uint32_t shard = 0; shard < shards(); ++shard) {
    const uint32_t owner = At(shard).owner();
    if (HandOver(shard, here)) moves.owners.insert(owner);
  }
  moves.any = !moves.owners.empty();
  std::set<uint32_t> busy;
  for (uint32_t shard = 0; shard < shards(); ++shard) moves.any |= Fill(shard, here, busy);
  if (!moves.any) places_.set_epoch(epoch() - 1);
  return moves;
}

bool Placement::HandOver(uint32_t shard, const std::set<uint32_t>& here) {
  const v1::ShardPlace& place = At(shard);
  const uint32_t home = HomeOf(shard), before = place.owner();
  const bool ready = place.has_replica() && place.replica() == home && place.synced();
  if (before == home || !ready) return false;
  SetOwner(shard, home);
  const std::optional<uint32_t> second = SecondOf(shard);
  const bool second_here = second && here.count(*second) > 0;
  if (second_here || (second && drained_.count(before) == 0)) {
    SetReplica(shard, second_here ? *second : before);
  } else {
    ClearReplica(shard);
  }
  return true;
}

bool Placement::Fill(uint32_t shard, const std::set<uint32_t>& here, std::set<uint32_t>& busy) {
  const v1::ShardPlace& place = At(shard);
  const bool at_home = place.owner() == HomeOf(shard);
  const std::optional<uint32_t> next = at_home ? SecondOf(shard) : HomeOf(shard);
  if (!next) {
    if (!place.has_replica()) return false;
    ClearReplica(shard);
    return true;
  }
  if (here.count(*next) == 0 || (place.has_replica() && place.replica() == *next)) return false;
  // A shard without a second holder gets one at once, even if its owner is filling another replica.
  const bool wanting = homes_.replicas > 1 && !place.has_replica();
  if (!wanting && !busy.insert(place.owner()).second) return false;
  SetReplica(shard, *next);
  return true;
}

// ---- how it stands

bool Placement::Filling() const {
  return std::any_of(places_.shards().begin(), places_.shards().end(),
                     [](const auto& place) { return place.has_replica() && !place.synced(); });
}

bool Placement::Holds(uint32_t server) const {
  return std::any_of(places_.shards().begin(), places_.shards().end(), [&](const auto& place) {
    return place.owner() == server || (place.has_replica() && place.replica() == server);
  });
}

bool Placement::Settled(uint32_t shard) const {
  const v1::ShardPlace& place = At(shard);
  const std::optional<uint32_t> second = SecondOf(shard);
  const bool replica = second ? place.has_replica() && place.replica() == *second && place.synced()
                              : !place.has_replica();
  return replica && place.owner() == HomeOf(shard);
}

uint32_t Placement::ToMove() const {
  uint32_t count = 0;
  for (uint32_t shard = 0; shard < shards(); ++shard) count += Settled(shard) ? 0 : 1;
  return count;
}

bool Placement::whole() const {
  for (const v1::ShardPlace& place : places_.shards()) {
    if (!place.has_replica() || !place.synced()) return false;
  }
  return true;
}

}  // namespace leeway
