// Which server owns each shard, and which holds its replica. Pure; not thread-safe.
//
// At first server i owns shard i, and with two holders server i + 1 (mod S) has its replica. A lost
// server's shards go to their replicas, if those are synced: if even one is not, blocks are lost
// and everything begins anew from a checkpoint. A server that comes (back) keeps the replicas of
// shards that have none.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

class Placement {
 public:
  // `replicas`: holders of each shard, 1 or 2 (and 2 servers at least).
  Placement(uint32_t servers, uint32_t replicas);
  // As it was recorded.
  Placement(uint32_t replicas, v1::Placement recorded);

  // Everything where it was at first, in a new epoch, nothing synced.
  void Reset();
  // False, and nothing has changed: a shard would be lost.
  bool Lose(uint32_t server);
  // The server is here, and holds nothing. True: it has got something to hold.
  bool Join(uint32_t server);
  // The replica of `shard` that began in `since_epoch` is synced. True: that is news.
  bool SetSynced(uint32_t shard, uint64_t since_epoch);

  uint32_t owner(uint32_t shard) const { return places_.shards(static_cast<int>(shard)).owner(); }
  // In which epoch it took over from another; 0: it is the first since Reset().
  uint64_t owner_since(uint32_t shard) const { return owner_since_[shard]; }
  uint64_t epoch() const { return places_.epoch(); }
  uint32_t shards() const { return static_cast<uint32_t>(places_.shards_size()); }
  // Shards whose replica is on the server that owned them at first, and synced, go back to it; who
  // owned them keeps the replica. Who owned them; nobody: nothing has changed. So what a lost
  // server leaves to others is theirs only until it is back. In a new epoch, of which those must
  // have heard before anybody else does: they are alive, and answer readers.
  std::set<uint32_t> Rebalance();

  // Every shard has a replica that is synced.
  bool whole() const;
  const v1::Placement& proto() const { return places_; }

 private:
  v1::ShardPlace& At(uint32_t shard) { return *places_.mutable_shards(static_cast<int>(shard)); }
  void SetReplica(uint32_t shard, uint32_t server);
  void SetOwner(uint32_t shard, uint32_t server);

  uint32_t replicas_;
  v1::Placement places_;
  std::vector<uint64_t> owner_since_;
};

}  // namespace leeway
