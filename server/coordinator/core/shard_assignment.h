// Knows which server holds which shard, and whether every shard is at its home. placement.h makes
// the decisions; this class tells it which servers come and go. Owns the placement, and whether the
// job is being resized. The core must report here servers that come and go, synced replicas, and
// the number of servers that are wanted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/commands.h"
#include "server/coordinator/core/job_facts.h"
#include "server/coordinator/core/placement.h"
#include "server/coordinator/core/server_fleet.h"

namespace leeway {

// Pure; not thread-safe.
class ShardAssignment {
 public:
  // Begins with the placement that the previous coordinator recorded. All arguments must outlive
  // this object.
  ShardAssignment(const JobFacts& facts, const ServerFleet& fleet, Commands& commands);

  const Placement& places() const { return placement_; }
  std::vector<uint32_t> Owners() const;
  // Returns a shard with its owner, such as "shard 1 (server 0)".
  std::string ShardName(uint32_t shard) const;
  // Fill in, for workers, the address of each shard's owner, and the epoch.
  void Fill(v1::RegisterWorkerReply& reply) const;
  void Fill(v1::HeartbeatReply& reply) const;

  // Does the same as the functions of Placement.
  bool Lose(uint32_t server) { return placement_.Lose(server); }
  bool Join(uint32_t server) { return placement_.Join(server); }
  void Renew() { placement_.Renew(); }
  // Places all shards anew on the servers that are here.
  void Reset();
  // Continues with the shards that the servers still hold from the time of the previous
  // coordinator. Returns false, and changes nothing, if the servers hold too little.
  bool TakeUp();
  // Does the same as the functions of Placement.
  void Drain(uint32_t server) { placement_.Drain(server); }
  void Undrain(uint32_t server) { placement_.Undrain(server); }
  // Marks as synced the replicas that the request reports. Returns true if one of them was not
  // synced before.
  bool TakeSynced(const v1::ServerHeartbeatRequest& request);

  // Returns true if another number of servers was requested, and not every shard is at its home
  // yet.
  bool resizing() const { return resizing_; }
  void Resize(uint32_t servers);
  // Continues, when the job begins, a resizing that the previous coordinator had not finished.
  void GoOnResizing();
  // Moves shards to their homes, as far as that is possible now.
  Placement::Moves Rebalance() { return placement_.Rebalance(fleet_.table().Here()); }
  // Ends the resizing, with an event, once every shard is at its home.
  void FinishResizing();
  // Returns a message such as "3 shards to move, to 4 servers and waiting for server 3"; empty if
  // nothing moves.
  std::string ResizeMessage() const;

 private:
  // Returns true if the server's process holds what the previous coordinator's record assigns to
  // the server.
  bool HoldsAsRecorded(uint32_t server) const;

  const JobFacts& facts_;
  const ServerFleet& fleet_;
  Commands& commands_;
  Placement placement_;
  bool resizing_ = false;
};

}  // namespace leeway
