// A server process: the shards that it owns, the replicas that it keeps, and its lease. In the
// product these are server/node/server_node.cc, parameter_service.cc and held_model.cc.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "leeway/v1/coordinator.pb.h"
#include "tests/sim/server.h"

namespace leeway::sim {

// What ReplicaStore (server/replica/replica_store.h) keeps, under the same rule.
class SimReplica {
 public:
  struct Slot {
    bool here = false;
    Version current;
    std::optional<Version> previous;
  };
  SimReplica(uint64_t since_epoch, size_t blocks) : since_epoch_(since_epoch), slots_(blocks) {}

  uint64_t since_epoch() const { return since_epoch_; }
  absl::StatusCode Take(const Context& context, const Message& message);
  // Ends the replica, which takes no message any more. Returns nothing if a block never had a
  // version.
  std::optional<std::vector<Slot>> TakeOver();

 private:
  uint64_t since_epoch_;
  bool closed_ = false;
  std::vector<Slot> slots_;
};

class SimHost {
 public:
  using Disks = std::array<SimServer::Disk, kServersMax>;

  SimHost(uint32_t server, const Shape& shape, uint32_t boot);

  // ---- from the coordinator
  absl::StatusCode Configure(Context& context, const Message& command, const Disks& disks);
  void OnSetLive(Context& context, uint32_t rank, bool live);
  absl::StatusCode OnCommitted(Context& context, const Message& command);
  void OnHeldHeard(Context& context, const Message& reply);
  absl::StatusOr<uint64_t> Hold(const Context& context, const Message& command, Disks& disks) const;
  // The coordinator has heard the heartbeat that this process sent at `sent`, by its own clock.
  void OnHeard(Micros sent);
  // Whether it holds what the coordinator's placement of `epoch` said.
  bool IsCurrent(uint64_t epoch) const { return !made_ || epoch_ == epoch; }
  // Fills in what a registration or a heartbeat reports about the shards here.
  void Fill(const Context& context, Message& message) const;

  // ---- from workers and other servers, and timers
  void OnRequest(Context& context, const Message& request);
  void OnReplicate(Context& context, const Message& message);
  void OnReplicated(Context& context, const Message& message);
  void OnBroken(Context& context, const Message& message);
  void OnApplied(Context& context, const Message& timer);
  void OnTick(Context& context);

  uint64_t generation() const { return generation_; }
  SimServer* shard(uint32_t number) { return owned_[number] ? &*owned_[number] : nullptr; }

 private:
  absl::StatusCode CheckHeld(const Context& context, const Message& request) const;
  bool HasLease(const Context& context) const;
  absl::StatusCode Place(Context& context, const Message& command, const v1::Placement& placement,
                         const Disks& disks);
  bool Own(Context& context, uint32_t shard, const Message& command, const v1::Placement& placement,
           const Disks& disks);
  bool Promote(Context& context, uint32_t shard, SimServer& made);
  void GiveUp(Context& context, uint32_t shard);
  void CheckOwners(Context& context, const v1::Placement& placement) const;

  const uint32_t server_;
  const NodeId node_;
  const uint32_t boot_;
  // The generation that is served. `made_`: there is a model.
  uint64_t generation_ = 0;
  bool made_ = false;
  uint64_t epoch_ = 0;
  bool loaded_ = false;
  std::array<std::optional<SimServer>, kServersMax> owned_;
  std::array<std::optional<SimReplica>, kServersMax> replicas_;
  Micros lease_ = INT64_MAX;
};

}  // namespace leeway::sim
