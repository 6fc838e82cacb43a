// The part of the job's model that a server has in one generation: the shards that the server owns,
// with their cut writers and the links to their replicas, and the replicas of other servers'
// shards.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/transport_security.h"
#include "common/service/server_queue.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/node/cut_writer.h"
#include "server/replica/replica_link.h"
#include "server/replica/replica_store.h"
#include "server/service/shard_table.h"
#include "server/shard/shard.h"

namespace leeway {

// Not thread-safe, but the objects that it returns are.
class HeldModel {
 public:
  struct Options {
    v1::TrainingJob job;
    uint64_t job_id = 0;
    uint32_t server = 0;
    // The host of this server. Empty if it is not known.
    std::string host;
    ServerQueue* queue = nullptr;
    // The coordinator's address.
    std::string coordinator;
    // The credentials of the channels to the coordinator and to other servers.
    const TransportSecurity* security = &ProcessSecurity();
    // Called in the writers' threads when a shard's part of a cut is durable or could not be
    // written.
    std::function<void(uint32_t shard, uint64_t cut, const absl::StatusOr<v1::SavedShard>&)> report;
  };

  // Makes a model without shards and replicas. Returns INVALID_ARGUMENT if the configuration has no
  // possible layout of blocks.
  static absl::StatusOr<std::unique_ptr<HeldModel>> Make(Options options,
                                                         const v1::ConfigureRequest& configuration);
  // Waits until the files that are being written are finished.
  ~HeldModel();

  uint64_t generation() const { return configuration_.generation(); }
  uint64_t epoch() const { return configuration_.placement().epoch(); }
  // Returns true if `configuration` is the present configuration of this model.
  bool Is(const v1::ConfigureRequest& configuration) const;

  // Returns INVALID_ARGUMENT for a configuration that cannot follow the present one. Returns
  // FAILED_PRECONDITION if a replica that is to become a shard lacks a block. Place() would refuse
  // both as well, but only after it has done half of its work.
  absl::Status CheckFollows(const v1::ConfigureRequest& configuration) const;
  // Adds and removes shards and replicas according to the placement. The generation must be the
  // same. A new shard is loaded from the checkpoint if the configuration sets `load`. Otherwise the
  // shard is made from the replica here. If that replica is not complete, returns
  // FAILED_PRECONDITION.
  absl::Status Place(const v1::ConfigureRequest& configuration);

  ShardTable::Holdings holdings() const;
  // The shards here that have a replica, and the epochs in which their replicas began.
  struct Replicated {
    uint32_t number = 0;
    uint64_t since_epoch = 0;
    std::shared_ptr<Shard> shard;
  };
  std::vector<Replicated> replicated() const;
  // Writes a shard's part of the cut at `clock`. Returns INVALID_ARGUMENT if the job has no such
  // shard or no block is near that clock, and UNAVAILABLE if this server does not own the shard.
  // Other errors are those of Shard::Hold and CutWriter::WriteLast. Returns a default SavedShard if
  // the shard has no blocks.
  absl::StatusOr<v1::SavedShard> Save(uint32_t shard, uint64_t clock);
  std::string Describe() const;

 private:
  struct Owned {
    std::shared_ptr<CutWriter> cuts;
    std::shared_ptr<Shard> shard;
    std::shared_ptr<ReplicaLink> link;
    uint64_t link_epoch = 0;
  };

  HeldModel(Options options, const BlockLayout& layout, std::vector<std::string> slot_names);
  absl::Status Own(uint32_t number, const v1::ConfigureRequest& configuration);
  absl::StatusOr<Owned> MakeOwned(uint32_t number, const v1::ConfigureRequest& configuration);
  // Makes the listener for held contributions. Returns null if a clock needs the contributions of
  // all workers.
  std::shared_ptr<ContributionListener> MakeReporter(
      uint32_t number, const v1::ConfigureRequest& configuration) const;
  absl::Status Promote(uint32_t number, Shard& shard);
  void Link(Owned& owned, const v1::ShardPlace& place, const v1::ConfigureRequest& configuration);
  void Keep(uint32_t number, uint64_t since_epoch);
  void GiveUp(uint32_t number);
  // How this server reaches another server.
  struct Way {
    std::string address;
    bool shares_memory = false;
  };
  Way WayTo(uint32_t server, const v1::ConfigureRequest& configuration) const;

  const Options options_;
  const BlockLayout layout_;
  const std::vector<std::string> slot_names_;
  const std::shared_ptr<SharedArena> memory_;
  // The configuration that was placed last.
  v1::ConfigureRequest configuration_;
  std::map<uint32_t, Owned> owned_;
  std::map<uint32_t, std::shared_ptr<ReplicaStore>> replicas_;
};

}  // namespace leeway
