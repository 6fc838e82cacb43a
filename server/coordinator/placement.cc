#include "server/coordinator/placement.h"

#include <utility>

namespace leeway {

Placement::Placement(uint32_t servers, uint32_t replicas) : replicas_(replicas) {
  for (uint32_t shard = 0; shard < servers; ++shard) places_.add_shards();
  Reset();
}

Placement::Placement(uint32_t replicas, v1::Placement recorded)
    : replicas_(replicas), places_(std::move(recorded)), owner_since_(shards()) {}

void Placement::SetReplica(uint32_t shard, uint32_t server) {
  At(shard).set_replica(server);
  At(shard).set_synced(false);
  At(shard).set_since_epoch(epoch());
}

void Placement::SetOwner(uint32_t shard, uint32_t server) {
  At(shard).set_owner(server);
  owner_since_[shard] = epoch();
}

void Placement::Reset() {
  places_.set_epoch(places_.epoch() + 1);
  owner_since_.assign(shards(), 0);
  for (uint32_t shard = 0; shard < shards(); ++shard) {
    At(shard).Clear();
    At(shard).set_owner(shard);
    if (replicas_ > 1 && shards() > 1) SetReplica(shard, (shard + 1) % shards());
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
    place.clear_replica();
    place.set_synced(false);
    place.set_since_epoch(0);
  }
  return true;
}

bool Placement::Join(uint32_t server) {
  bool news = false;
  for (uint32_t shard = 0; shard < shards() && replicas_ > 1; ++shard) {
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

std::set<uint32_t> Placement::Rebalance() {
  std::set<uint32_t> owners;
  for (uint32_t shard = 0; shard < shards(); ++shard) {
    v1::ShardPlace& place = At(shard);
    const uint32_t owner = place.owner();
    if (owner == shard || !place.has_replica() || place.replica() != shard || !place.synced()) {
      continue;
    }
    if (owners.empty()) places_.set_epoch(places_.epoch() + 1);
    owners.insert(owner);
    SetOwner(shard, shard);
    SetReplica(shard, owner);
  }
  return owners;
}

bool Placement::whole() const {
  for (const v1::ShardPlace& place : places_.shards()) {
    if (!place.has_replica() || !place.synced()) return false;
  }
  return true;
}

}  // namespace leeway
