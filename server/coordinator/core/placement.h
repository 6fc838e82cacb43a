// Decides which server owns each shard, and which server holds its replica. Pure; not thread-safe.
//
// Shard k's home is server k mod S. If each shard has two holders, server k + 1 mod S has the
// replica of shard k. A lost server's shards continue on their replicas if all these replicas are
// synced. If even one replica is not synced, blocks are lost, and the job goes back to a
// checkpoint. Shards without a replica get one on the next server that joins or returns.
//
// A shard can be away from its home because the home was lost and is back, or because the job was
// resized. Such a shard moves to its home: the home becomes the shard's replica, receives the
// shard's blocks (is filled), and takes the shard over (Rebalance). Shards move in rounds, and the
// next round begins when no replica is being filled. In a round each owner fills at most one
// replica. The owner answers no worker about a block until the replica has the block, so these
// answers wait behind everything that the owner sends to the replica. With one replica at a time,
// training waits for one shard's transfer at most. If the shard had another replica before, it has
// a single holder until its home is filled.
//
// If server 0 is only the coordinator (the workers hold the blocks), the first home is server 1.
//
// A server that is leaving is drained. A drained server is not the home of any shard, so its shards
// move to the servers that stay.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

class Placement {
 public:
  struct Homes {
    // The homes of the shards are the servers from `first` up to, but not including, `end`.
    uint32_t first = 0;
    uint32_t end = 0;
    // The number of holders of each shard, 1 or 2. There must be at least that number of homes.
    uint32_t replicas = 1;
  };
  Placement(uint32_t shards, const Homes& homes);
  // Begins with a recorded placement.
  Placement(const Homes& homes, v1::Placement recorded);

  // From now on servers with an index of `servers` or higher are not homes. Rebalance then moves
  // the shards.
  void Want(uint32_t servers) { homes_.end = servers; }
  // Makes the next server that is not drained the home of this server's shards. Rebalance then
  // moves the shards. If all servers are drained, no shard moves.
  void Drain(uint32_t server) { drained_.insert(server); }
  // Makes the server a home again.
  void Undrain(uint32_t server) { drained_.erase(server); }
  // Places the shards on those of these servers that may be homes, in a new epoch; no replica is
  // synced.
  void Reset(const std::set<uint32_t>& here);
  // Moves the shards of a lost server to their replicas. Returns false, and changes nothing, if a
  // shard would be lost.
  bool Lose(uint32_t server);
  // Adds a server that is here and holds nothing. Returns true if the server now has something to
  // hold.
  bool Join(uint32_t server);
  // Begins a new epoch in which no shard moves, for a server that has missed an earlier placement.
  void Renew() { places_.set_epoch(places_.epoch() + 1); }
  // Marks the replica of `shard` that began in `since_epoch` as synced. Returns true if it was not
  // marked before.
  bool SetSynced(uint32_t shard, uint64_t since_epoch);

  // Hands each shard over to its home if the home has a synced replica of the shard, and begins to
  // fill the next replicas. All this makes one new epoch. After a hand-over the server that should
  // have the replica may not be in `here`; then the old owner keeps the replica.
  struct Moves {
    bool any = false;
    // The previous owners of the shards that were handed over. They must be told of the epoch
    // before all other servers, because until then they still answer readers.
    std::set<uint32_t> owners;
  };
  Moves Rebalance(const std::set<uint32_t>& here);

  uint32_t owner(uint32_t shard) const { return places_.shards(static_cast<int>(shard)).owner(); }
  // Returns the epoch in which the owner took the shard over; 0 if it is the first owner since
  // Reset().
  uint64_t owner_since(uint32_t shard) const { return owner_since_[shard]; }
  uint64_t epoch() const { return places_.epoch(); }
  uint32_t shards() const { return static_cast<uint32_t>(places_.shards_size()); }
  // Returns true if the server owns a shard or has a replica.
  bool Holds(uint32_t server) const;
  // Returns the number of shards that are not at their homes, or whose replica is not synced.
  uint32_t ToMove() const;
  // Returns true if every shard has a synced replica.
  bool whole() const;
  // Returns true if some replica is not synced.
  bool Filling() const;
  const v1::Placement& proto() const { return places_; }

 private:
  v1::ShardPlace& At(uint32_t shard) { return *places_.mutable_shards(static_cast<int>(shard)); }
  const v1::ShardPlace& At(uint32_t shard) const { return places_.shards(static_cast<int>(shard)); }
  uint32_t size() const { return homes_.end - homes_.first; }
  // Searches the homes in a circle, beginning with the `nth`, and returns the first that is not
  // drained; nullopt if all are drained.
  std::optional<uint32_t> NextUndrained(uint32_t nth) const;
  uint32_t HomeOf(uint32_t shard) const;
  // Returns the home of the shard's replica, once the shard is at home; nullopt if the shard has no
  // replica.
  std::optional<uint32_t> SecondOf(uint32_t shard) const;
  bool Settled(uint32_t shard) const;
  void SetReplica(uint32_t shard, uint32_t server);
  void ClearReplica(uint32_t shard);
  void SetOwner(uint32_t shard, uint32_t server);
  // The steps of Rebalance. Each returns true if it has changed something.
  bool HandOver(uint32_t shard, const std::set<uint32_t>& here);
  bool Fill(uint32_t shard, const std::set<uint32_t>& here, std::set<uint32_t>& busy);

  Homes homes_;
  std::set<uint32_t> drained_;
  v1::Placement places_;
  std::vector<uint64_t> owner_since_;
};

}  // namespace leeway
