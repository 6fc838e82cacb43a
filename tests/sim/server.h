// A server: real BlockCores, and in place of the values what is in them. It is the driver that
// server/shard.cc is in the product, and it checks every decision.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "server/core/block_core.h"
#include "tests/sim/context.h"
#include "tests/sim/values.h"

namespace leeway::sim {

class SimServer {
 public:
  // Cuts by clock, a version a block: what survives the process.
  using Disk = std::map<uint64_t, std::vector<Version>>;

  SimServer(uint32_t index, const Shape& shape, uint32_t boot);

  // Whole world: makes the blocks of a generation anew, from the cut at `clock` or empty. False: it
  // has passed that generation.
  bool Configure(Context& context, uint64_t generation, uint64_t clock, const Disk& disk);
  void Write(uint64_t clock, Disk& disk) const;
  uint64_t generation() const { return generation_; }
  uint32_t boot() const { return boot_; }

  void OnRequest(Context& context, const Message& request);
  void OnApplied(Context& context, const Message& timer);
  void OnTick(Context& context);
  void OnSetLive(Context& context, uint32_t rank, bool live);
  // What Shard::Hold says: every block as it stands, for the job's last cut.
  absl::StatusCode Hold(const Context& context, uint64_t clock, Disk& disk);

  // Every acknowledged contribution is in the values, and the values are what the cores say.
  void CheckAtEnd(Context& context) const;
  // The cut at `clock` is a legal state of this server's blocks.
  void CheckCut(Context& context, uint64_t clock) const;
  bool HasCut(uint64_t clock) const;
  // A cut that all blocks have reached and nobody was told of.
  std::optional<uint64_t> TakeCompleteCut();
  uint64_t Hash() const;
  uint64_t version(uint32_t block) const;
  // Exhaustive: the first version is there.
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
    // By this server's clock.
    Micros since = 0;
    // Elastic: the state before the contribution that it brought.
    std::optional<Version> before;
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
    // By rank: the newest incarnation heard.
    std::array<uint64_t, kRanksMax> newest{};
    // By rank: clocks whose contribution was acknowledged.
    std::array<uint64_t, kRanksMax> acknowledged{};
    uint64_t last_cut = 0;
    std::map<uint64_t, Version> cuts;
    bool skipped_cut = false;
  };

  Block& BlockOf(Context& context, uint32_t block) {
    return blocks_[block / context.shape.servers];
  }
  // FAILED_PRECONDITION, UNAVAILABLE or OK.
  absl::StatusCode CheckGeneration(const Context& context, const Message& request) const;
  void MakeBlocks(const Shape& shape);
  void Close(Context& context);
  void Load(Context& context, uint64_t clock, const Disk& disk);
  void Attach(Context& context, const Message& request);
  void Act(Context& context, Block& block, const Decisions& decisions);
  void CheckAccepted(Context& context, const Block& block, const Message& request);
  void TakeCut(Context& context, Block& block, uint64_t cut);
  void DoAnswer(Context& context, Block& block, const Answer& answer);
  void Refuse(Context& context, Block& block, const Refusal& refusal);
  void CheckNamesMissing(Context& context, const Block& block, const Reader& reader,
                         const absl::Status& status);
  void Begin(Context& context, Block& block, const Update& update);
  void CheckUpdate(Context& context, const Block& block, const Update& update);
  void Reject(Context& context, Block& block, const Update& update);
  void Apply(Context& context, Block& block, const Contribution& contribution);
  Version Shown(Context& context, const Block& block, const Reader& reader, const Answer& answer);
  void CheckRead(Context& context, const Block& block, const Reader& reader, const Answer& answer,
                 const Version& shown);
  void CheckFreshness(Context& context, const Block& block, const Sender& reader,
                      const Answer& answer);
  void CheckProgress(Context& context, const Block& block) const;
  void ScheduleTick(Context& context);
  static Sender SenderOf(const Message& request);

  const uint32_t index_;
  const NodeId node_;
  const uint32_t boot_;
  // Of the blocks there are; none yet: what comes is put off.
  uint64_t generation_ = 0;
  bool made_ = true;
  std::vector<Block> blocks_;
  // As this server was told.
  std::array<bool, kRanksMax> live_;
  RequestId last_request_ = 0;
  bool tick_scheduled_ = false;
  uint64_t reported_cut_ = 0;
};

}  // namespace leeway::sim
