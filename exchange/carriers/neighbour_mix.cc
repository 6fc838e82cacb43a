// The sync form of gossip (gossip_mix.h).

#include <algorithm>
#include <vector>

#include <spdlog/spdlog.h>

#include "config/gossip_graph.h"
#include "exchange/carriers/gossip_mix.h"
#include "exchange/carriers/payload_sum.h"

namespace leeway {
namespace {

class NeighbourMix final : public GossipMix {
 public:
  explicit NeighbourMix(const GossipContext& context)
      : context_(context), blocks_(context.layout.blocks()) {
    const v1::RegisterWorkerReply& registration = context.registration;
    context_.outbox.Open(registration.job_id(), registration.generation(), context.layout);
  }

  // This life has published nothing of earlier clocks.
  void Open(uint64_t clock, std::span<const float>) override { context_.outbox.KeepFrom(clock); }

  void Begin(uint64_t clock) override {
    clock_ = clock;
    // All workers have made the steps of clock - 2, because this worker has waited for that
    // (GossipMean::Tell), but some may still fetch weights of that clock.
    if (clock > 1) context_.outbox.KeepFrom(clock - 2);
    const v1::TrainingJob& job = context_.registration.job();
    const uint32_t rank = context_.registration.rank();
    neighbours_ = NeighboursOf(job.topology().gossip(), job.metadata().seed(), clock, rank,
                               job.workers().count());
    std::erase_if(neighbours_, [&](const Neighbour& each) {
      if (each.rank == rank) own_weight_ = static_cast<float>(each.weight);
      return each.rank == rank;
    });
  }

  void Take(uint32_t block, std::span<float> change, std::span<float> weights) override {
    const ElementRange range = context_.layout.Range(block);
    const uint64_t trained =
        std::clamp(context_.registration.schema().trained(), range.offset, range.end());
    for (uint64_t i = 0; i < trained - range.offset; ++i) change[i] = weights[i] - change[i];
    blocks_[block] = {change, weights};
    const PieceName name{v1::PIECE_WEIGHTS, clock_, block};
    std::ranges::copy(change, context_.outbox.Prepare(name).begin());
    context_.outbox.Publish(name, 0, 0);
    if (!neighbours_.empty()) return FetchNext(block);
    std::ranges::copy(change, weights.begin());
    context_.steps.Done(block);
  }

 private:
  // A block in the clock's exchange. One step of a block runs at a time.
  struct Block {
    std::span<float> own, mixed;
    // The next neighbour to fetch from.
    size_t next = 0;
    // The values of the second and later neighbours. Those of the first are added as they are read.
    std::vector<float> fetched = {};
  };

  void FetchNext(uint32_t block) {
    context_.steps.CallBegins();
    context_.peers.Fetch(
        neighbours_[blocks_[block].next].rank, {v1::PIECE_WEIGHTS, clock_, block},
        blocks_[block].own.size(),
        [this, block](const TransportReply& reply) {
          Add(blocks_[block], reply.payload);
          return absl::OkStatus();
        },
        [this, block](const absl::Status& status) {
          OnFetched(block, status);
          context_.steps.CallIsOver();
        });
  }

  // May run more than once for an answer, so it changes nothing that it reads.
  void Add(Block& block, const FloatPayload& payload) {
    if (block.next > 0) {
      block.fetched.resize(payload.size());
      return payload.CopyTo(block.fetched);
    }
    AddPayloads(FloatPayload::Of(block.own), own_weight_, payload,
                static_cast<float>(neighbours_[0].weight), block.mixed);
  }

  void OnFetched(uint32_t number, const absl::Status& status) {
    Block& block = blocks_[number];
    if (absl::IsOutOfRange(status)) {
      // The neighbour has a new life, which does not have these weights. This worker's own take
      // their place. One warning stands for all blocks.
      if (number == 0) {
        spdlog::warn("{}; this worker goes on without them", std::string(status.message()));
      }
      Add(block, FloatPayload::Of(block.own));
    } else if (!status.ok()) {
      return context_.steps.Fail(status);
    }
    if (block.next > 0) {
      const auto weight = static_cast<float>(neighbours_[block.next].weight);
      for (size_t i = 0; i < block.mixed.size(); ++i) block.mixed[i] += weight * block.fetched[i];
    }
    ++block.next;
    block.next < neighbours_.size() ? FetchNext(number) : context_.steps.Done(number);
  }

  const GossipContext context_;
  std::vector<Block> blocks_;
  uint64_t clock_ = 0;
  float own_weight_ = 1;
  std::vector<Neighbour> neighbours_;
};

}  // namespace

std::unique_ptr<GossipMix> MakeNeighbourMix(const GossipContext& context) {
  return std::make_unique<NeighbourMix>(context);
}

}  // namespace leeway
