// A server's shard: real BlockCores and ReplicaGates, with the set of applied contributions in
// place of values. It drives them as server/shard/shard.cc does in the product, and checks every
// decision.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/block_core.h"
#include "server/core/held_book.h"
#include "server/core/replica_gate.h"
#include "tests/sim/context.h"
#include "tests/sim/values.h"

namespace leeway::sim {

class SimServer {
 public:
  // What survives the process: cuts by clock and writer, one version for each block. Two owners of
  // a shard may write the same cut, each to a file of its own.
  using Disk = std::map<std::pair<uint64_t, uint64_t>, std::vector<Version>>;

  // Which process owns the shard, and since when.
  struct Place {
    uint32_t boot = 0;
    uint64_t generation = 0;
    uint64_t epoch = 0;
    // A number that no other instance has. Messages for another instance are lost.
    uint32_t instance = 0;
  };
  SimServer(uint32_t index, NodeId node, const Shape& shape, const Place& place);

  // Whole world: begins with the cut at `clock`, or with no versions.
  void Begin(Context& context, uint64_t clock, const Disk& disk);
  // Ends every wait.
  void Close(Context& context);
  // Writes the cut at `clock`, and returns a hash that stands for the file.
  uint64_t Write(uint64_t clock, Disk& disk) const;
  // A hash that stands for a file with these versions.
  static uint64_t HashOf(const std::vector<Version>& versions);

  // ---- committed sets: server_sets.cc
  void OnCommitted(Context& context, uint64_t clock, uint64_t ranks);
  // The coordinator has answered this shard's report.
  void OnHeldHeard(Context& context, const Message& reply);

  // ---- replicas: server_replica.cc
  void SetReplica(Context& context, std::optional<NodeId> replica, uint64_t since_epoch);
  // The epoch since which its replica is synced; 0: the replica is not synced.
  uint64_t synced_since(const Context& context) const;
  void TakeOver(Context& context, size_t place, const Version& current,
                const std::optional<Version>& previous);
  void OnReplicated(Context& context, const Message& message);
  void OnBroken(Context& context, const Message& message);

  // From `until` on, by this process's clock, the shard sends no answers.
  void SetLease(Micros until) { lease_ = until; }
  void OnRequest(Context& context, const Message& request);
  void OnApplied(Context& context, const Message& timer);
  void OnTick(Context& context);
  void OnSetLive(Context& context, uint32_t rank, bool live);
  // Does what Shard::Hold does: writes every block as it stands, for the job's last cut.
  absl::StatusOr<uint64_t> Hold(const Context& context, uint64_t clock, Disk& disk) const;

  // Checks that the values have every acknowledged contribution, and are what the cores say.
  void CheckAtEnd(Context& context) const;
  // Checks that the cut at `clock` is a legal state of this server's blocks.
  void CheckCut(Context& context, uint64_t clock) const;
  bool HasCut(uint64_t clock) const;
  // Returns a cut that all blocks have reached and that was not reported yet.
  std::optional<uint64_t> TakeCompleteCut();
  uint64_t Hash() const;
  uint64_t version(uint32_t block) const;
  // Exhaustive mode: gives every block its first version.
  void Initialize(Context& context);

 private:
  struct Contribution {
    RequestId request = 0;
    uint32_t rank = 0;
    uint64_t clock = 0;
    uint64_t value = 0;
  };
  struct Reader {
    RequestId request = 0;
    Message message;
    // When it began to wait, by this server's clock.
    Micros since = 0;
    // Elastic exchange: the state before the contribution that this request brought.
    std::optional<Version> before;
  };
  // An answer that waits for the replica.
  struct Gated {
    uint64_t version = 0;
    std::optional<Micros> seen;
    Message reply;
  };
  struct Block {
    Block(uint32_t block_number, const ConsistencyRules& rules)
        : number(block_number), core(block_number, rules) {}
    uint32_t number;
    BlockCore core;
    Version current;
    Version previous;
    std::vector<Contribution> kept;
    std::vector<Reader> readers;
    std::optional<Update> running;
    // By rank: the newest incarnation that has attached.
    std::array<uint64_t, kRanksMax> newest{};
    // By rank: the clocks whose contributions were acknowledged.
    std::array<uint64_t, kRanksMax> acknowledged{};
    ReplicaGate gate;
    // By rank: the contributions in the replica's version; absent while it has no version.
    std::optional<std::array<uint64_t, kRanksMax>> replicated;
    std::deque<Gated> gated;
    // The version that this owner began with if no previous one came with it, else UINT64_MAX.
    uint64_t first_version = 0;
    uint64_t last_cut = 0;
    std::map<uint64_t, Version> cuts;
    bool skipped_cut = false;
  };

  Block& BlockOf(Context& context, uint32_t block) {
    return blocks_[block / context.shape.servers];
  }
  void TellHeld(Context& context);
  void TellRefused(Context& context, const Block& block, RequestId request);
  void TickHeld(Context& context);
  void Drop(Context& context, Block& block, const RequestIds& dropped);
  BlockProgress ProgressOf(const Context& context, const Version& version) const;
  void Replicate(Context& context, Block& block);
  void Leave(Context& context, Block& block, const Message& reply);
  void LeaveOpen(Context& context, Block& block);
  void GiveUpGated(Context& context, Block& block, Micros since, bool closed);
  void LeaveNow(Context& context, const Block& block, const Message& reply, bool held = false);
  void CheckTakenOver(Context& context, const Block& block, const Version& current) const;
  void Load(Context& context, uint64_t clock, const Disk& disk);
  const std::vector<Version>* FindPart(Context& context, uint64_t clock, const Disk& disk) const;
  // Names the writer of a file.
  uint64_t owner() const { return place_.generation << 32 | place_.epoch; }
  void Attach(Context& context, const Message& request);
  void Contribute(Context& context, Block& block, const Message& request, const Sender& sender);
  void Act(Context& context, Block& block, const Decisions& decisions);
  void CheckAccepted(Context& context, const Block& block, const Message& request);
  void TakeCut(Context& context, Block& block, uint64_t cut);
  void DoAnswer(Context& context, Block& block, const Answer& answer);
  static std::vector<Reader>::iterator Find(Block& block, RequestId request);
  void Refuse(Context& context, Block& block, const Refusal& refusal);
  void Remind(Context& context, Block& block, const Refusal& reminder);
  void CheckNamesMissing(Context& context, const Block& block, const Reader& reader,
                         const absl::Status& status);
  void BeginUpdate(Context& context, Block& block, const Update& update);
  void CheckUpdate(Context& context, const Block& block, const Update& update);
  void Reject(Context& context, Block& block, const Update& update);
  void Apply(Context& context, Block& block, const Contribution& contribution);
  Version Shown(Context& context, const Block& block, const Reader& reader, const Answer& answer);
  void CheckRead(Context& context, const Block& block, const Reader& reader, const Answer& answer,
                 const Version& shown);
  void CheckFreshness(Context& context, const Block& block, const Sender& reader,
                      const Answer& answer);
  void CheckProgress(Context& context, const Block& block) const;
  // `acknowledged`: the rank's acknowledged clocks, one bit each.
  static void CheckApplied(Context& context, const Block& block, uint32_t rank,
                           uint64_t acknowledged);
  void ScheduleTick(Context& context);
  static Sender SenderOf(const Message& request);

  const uint32_t index_;
  const NodeId node_;
  const Place place_;
  Micros lease_ = INT64_MAX;
  std::optional<NodeId> replica_;
  uint64_t since_epoch_ = 0;
  uint32_t stream_ = 0;
  std::vector<Block> blocks_;
  // Committed sets: what the coordinator has to hear, and since when a report of it is under way.
  std::optional<HeldBook> held_;
  uint32_t telling_ = 0;
  Micros told_ = 0;
  // Which ranks live, as the coordinator told this server.
  std::array<bool, kRanksMax> live_;
  RequestId last_request_ = 0;
  bool tick_scheduled_ = false;
  uint64_t reported_cut_ = 0;
};

}  // namespace leeway::sim
