// What a server holds of the job's model in one generation: the shards that it owns, with their cut
// writers and links to their replicas, and the replicas that it keeps of other servers' shards.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
    // The number of this server, and its host; empty: unknown.
    uint32_t server = 0;
    std::string host;
    ServerQueue* queue = nullptr;
    // The coordinator's address.
    std::string coordinator;
    // Called from the writers' threads when a part of a cut is durable, or could not be written.
    std::function<void(uint32_t shard, uint64_t cut, const absl::StatusOr<v1::SavedShard>&)> report;
  };

  // Makes a model that holds nothing yet. INVALID_ARGUMENT for a configuration that does not give a
  // layout of blocks.
  static absl::StatusOr<std::unique_ptr<HeldModel>> Make(Options options,
                                                         const v1::ConfigureRequest& configuration);
  // Finishes the files that are being written.
  ~HeldModel();

  uint64_t generation() const { return configuration_.generation(); }
  uint64_t epoch() const { return configuration_.placement().epoch(); }
  // Whether the configuration is the one that this model already has.
  bool Is(const v1::ConfigureRequest& configuration) const;

  // INVALID_ARGUMENT for a configuration that cannot follow the current one. FAILED_PRECONDITION if
  // a replica that is to become the shard lacks a block. Place() would refuse that, too, but only
  // after it had done half of its work.
  absl::Status CheckFollows(const v1::ConfigureRequest& configuration) const;
  // Takes and gives up shards and replicas as the placement says. The generation must be the same.
  // A shard that is not here comes from the checkpoint if the configuration says `load`. Otherwise
  // it comes from the replica here, and a replica that is not complete gives FAILED_PRECONDITION.
  absl::Status Place(const v1::ConfigureRequest& configuration);

  ShardTable::Holdings holdings() const;
  // The shards here that have a replica, and the epochs in which their replicas began.
  struct Replicated {
    uint32_t number = 0;
    uint64_t since_epoch = 0;
    std::shared_ptr<Shard> shard;
  };
  std::vector<Replicated> replicated() const;
  // Writes a shard's part of the cut at `clock`. INVALID_ARGUMENT if the job has no such shard or
  // no block is near that clock, UNAVAILABLE if this server does not own the shard; other errors
  // are those of Shard::Hold and CutWriter::WriteLast. Returns a default SavedShard if the shard
  // has no blocks.
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
  // Null if a clock needs the contributions of all workers.
  std::shared_ptr<ContributionListener> MakeReporter(
      uint32_t number, const v1::ConfigureRequest& configuration) const;
  absl::Status Promote(uint32_t number, Shard& shard);
  void Link(Owned& owned, const v1::ShardPlace& place, const v1::ConfigureRequest& configuration);
  void Keep(uint32_t number, uint64_t since_epoch);
  void GiveUp(uint32_t number);
  // How this server reaches another one.
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
