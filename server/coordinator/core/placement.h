// Which server owns each shard, and which holds its replica. Pure; not thread-safe.
//
// The shards are dealt out: shard k's home is server k mod S, and with two holders the server after
// that one (mod S) has its replica. A lost server's shards go to their replicas, if those are
// synced: if even one is not, blocks are lost and everything begins anew from a checkpoint. A
// server that comes (back) keeps the replicas of shards that have none.
//
// What is not at its home (its server was lost and is back, or there are more or fewer servers now)
// moves there: the home becomes its replica, is filled, and takes it over (Rebalance). It moves in
// rounds, the next one when nothing is being filled any more, and in a round each owner fills one
// shard at most: while a block is new to its replica, its answers wait behind all that its owner
// sends there, so what stands still, and for how long, is one shard's sending. A shard that had
// another replica has a single holder meanwhile.
//
// A server that is to leave is drained: it is nobody's home any more, so its shards move to those
// that stay.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

class Placement {
 public:
  // `replicas`: holders of each shard, 1 or 2 (and as many servers at least).
  Placement(uint32_t shards, uint32_t servers, uint32_t replicas);
  // As it was recorded.
  Placement(uint32_t servers, uint32_t replicas, v1::Placement recorded);

  // Shards are to be on servers 0 to `servers` - 1 from now on; nothing moves but by Rebalance.
  void Want(uint32_t servers) { servers_ = servers; }
  // What is at home at this server is to be at the next one that is not drained; nothing moves but
  // by Rebalance. Where all are drained, nothing is to move.
  void Drain(uint32_t server) { drained_.insert(server); }
  // It is home again.
  void Undrain(uint32_t server) { drained_.erase(server); }
  // Dealt out to these servers, rising, in a new epoch, nothing synced.
  void Reset(const std::vector<uint32_t>& servers);
  // False, and nothing has changed: a shard would be lost.
  bool Lose(uint32_t server);
  // The server is here, and holds nothing. True: it has got something to hold.
  bool Join(uint32_t server);
  // Nothing moves; a server that has missed what it was told is to hear it anew.
  void Renew() { places_.set_epoch(places_.epoch() + 1); }
  // The replica of `shard` that began in `since_epoch` is synced. True: that is news.
  bool SetSynced(uint32_t shard, uint64_t since_epoch);

  // Shards whose replica is at their home, and synced, are handed over to it, and those that are to
  // move next begin to be filled, all in one new epoch. Where who is to have the replica is not
  // here, who owned the shard keeps it.
  struct Moves {
    bool any = false;
    // Who owned what was handed over: they must have heard of the epoch before anybody else does,
    // for they are alive, and answer readers.
    std::set<uint32_t> owners;
  };
  Moves Rebalance(const std::set<uint32_t>& here);

  uint32_t owner(uint32_t shard) const { return places_.shards(static_cast<int>(shard)).owner(); }
  // In which epoch it took over from another; 0: it is the first since Reset().
  uint64_t owner_since(uint32_t shard) const { return owner_since_[shard]; }
  uint64_t epoch() const { return places_.epoch(); }
  uint32_t shards() const { return static_cast<uint32_t>(places_.shards_size()); }
  // Owns a shard, or has the replica of one.
  bool Holds(uint32_t server) const;
  // Shards that are not where they are to be, or whose replica is not synced.
  uint32_t ToMove() const;
  // Every shard has a replica that is synced.
  bool whole() const;
  // Some replica is not synced.
  bool Filling() const;
  const v1::Placement& proto() const { return places_; }

 private:
  v1::ShardPlace& At(uint32_t shard) { return *places_.mutable_shards(static_cast<int>(shard)); }
  const v1::ShardPlace& At(uint32_t shard) const { return places_.shards(static_cast<int>(shard)); }
  // The first server from `first` on, in a circle, that is not drained; nothing: all are.
  std::optional<uint32_t> NextUndrained(uint32_t first) const;
  uint32_t HomeOf(uint32_t shard) const;
  // Where its replica is to be once it is at home; nothing: nowhere.
  std::optional<uint32_t> SecondOf(uint32_t shard) const;
  bool Settled(uint32_t shard) const;
  void SetReplica(uint32_t shard, uint32_t server);
  void ClearReplica(uint32_t shard);
  void SetOwner(uint32_t shard, uint32_t server);
  // Parts of Rebalance. True: something has changed.
  bool HandOver(uint32_t shard, const std::set<uint32_t>& here);
  bool Fill(uint32_t shard, const std::set<uint32_t>& here, std::set<uint32_t>& busy);

  uint32_t servers_;
  uint32_t replicas_;
  std::set<uint32_t> drained_;
  v1::Placement places_;
  std::vector<uint64_t> owner_since_;
};

}  // namespace leeway
