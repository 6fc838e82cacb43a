// Who holds which shard, and whether that is as it is to be: placement.h decides, this follows the
// servers. Owns the placement, and whether the job is being resized; must be told of servers that
// come and go, of synced replicas, and how many servers are wanted.
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
  // As the coordinator before has left it. All three outlive it.
  ShardAssignment(const JobFacts& facts, const ServerFleet& fleet, Commands& commands);

  const Placement& places() const { return placement_; }
  // By shard.
  std::vector<uint32_t> Owners() const;
  // "shard 1 (server 0)": who has it.
  std::string ShardName(uint32_t shard) const;
  // By shard, for workers: where its owner is; and the epoch.
  void Fill(v1::RegisterWorkerReply& reply) const;
  void Fill(v1::HeartbeatReply& reply) const;

  // As Placement's.
  bool Lose(uint32_t server) { return placement_.Lose(server); }
  bool Join(uint32_t server) { return placement_.Join(server); }
  void Renew() { placement_.Renew(); }
  // Dealt out anew to the servers that are here.
  void Reset();
  // Goes on with what the servers still hold of before this coordinator. False: they hold too
  // little, and nothing has changed.
  bool TakeUp();
  // As Placement's.
  void Drain(uint32_t server) { placement_.Drain(server); }
  void Undrain(uint32_t server) { placement_.Undrain(server); }
  // True: some replica is synced now, and was not.
  bool TakeSynced(const v1::ServerHeartbeatRequest& request);

  // Another number of servers was asked for, and not everything is where it is to be.
  bool resizing() const { return resizing_; }
  void Resize(uint32_t servers);
  // As the job begins: what the coordinator before was asked for may not be done.
  void GoOnResizing();
  // Moves shards to where they are to be, as far as is possible now.
  Placement::Moves Rebalance() { return placement_.Rebalance(fleet_.table().Here()); }
  // Says so once everything is where it was asked to be.
  void FinishResizing();
  // "3 shards to move, to 4 servers and waiting for server 3"; empty where nothing moves.
  std::string ResizeMessage() const;

 private:
  // The process that holds what the record before gives to the server.
  bool HoldsAsRecorded(uint32_t server) const;

  const JobFacts& facts_;
  const ServerFleet& fleet_;
  Commands& commands_;
  Placement placement_;
  bool resizing_ = false;
};

}  // namespace leeway
