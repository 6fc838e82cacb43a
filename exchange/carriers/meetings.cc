// The async form of gossip (gossip_mix.h).

#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "config/gossip_graph.h"
#include "exchange/carriers/gossip_mix.h"
#include "exchange/carriers/payload_sum.h"

namespace leeway {
namespace {

// How many other workers are drawn in a clock, before the worker goes on alone.
constexpr uint32_t kAttempts = 64;

class Meetings final : public GossipMix {
 public:
  explicit Meetings(const GossipContext& context)
      : context_(context),
        blocks_(context.layout.blocks()),
        refused_at_(context.registration.job().workers().count()) {}

  void Open(uint64_t, std::span<const float> weights) override {
    const v1::RegisterWorkerReply& registration = context_.registration;
    context_.meetings.Open(registration.job_id(), registration.generation(), context_.layout,
                           weights);
  }

  void Begin(uint64_t clock) override { clock_ = clock; }

  void Take(uint32_t block, std::span<float> change, std::span<float> weights) override {
    const ElementRange range = context_.layout.Range(block);
    const uint64_t trained =
        std::clamp(context_.registration.schema().trained(), range.offset, range.end());
    // Averaged elements hold values, not changes.
    for (uint64_t i = trained - range.offset; i < range.count; ++i) {
      change[i] = weights[i] - change[i];
    }
    const std::vector<float> steps(change.begin(), change.end());
    context_.meetings.Subtract(block, steps, change);
    blocks_[block] = {change, weights};
    Meet(block);
  }

  void End() override { context_.meetings.End(); }

 private:
  // A block in the clock's exchange. One step of a block runs at a time.
  struct Block {
    std::span<float> own, mixed;
    // Half of the difference from the other worker.
    std::vector<float> half = {};
  };

  // Returns whom to meet in this clock. Absent if nobody is there.
  std::optional<uint32_t> Partner() const {
    const v1::TrainingJob& job = context_.registration.job();
    const uint32_t workers = job.workers().count(), rank = context_.registration.rank();
    for (uint32_t attempt = 0; workers > 1 && attempt < kAttempts; ++attempt) {
      const uint32_t partner = PartnerOf(job.metadata().seed(), clock_, rank, workers, attempt);
      const bool refused = refused_at_[partner].load() == clock_ + 1;
      if (!refused && context_.peers.IsThere(partner)) return partner;
    }
    return std::nullopt;
  }

  void Meet(uint32_t number) {
    Block& block = blocks_[number];
    const std::optional<uint32_t> partner = Partner();
    if (!partner) {
      std::ranges::copy(block.own, block.mixed.begin());
      return context_.steps.Done(number);
    }
    context_.steps.CallBegins();
    context_.peers.Meet(
        *partner, clock_, number, block.own,
        [&block](const TransportReply& reply) {
          block.half.resize(reply.payload.size());
          AddPayloads(FloatPayload::Of(block.own), 0.5F, reply.payload, -0.5F, block.half);
          return absl::OkStatus();
        },
        [this, number, partner = *partner](const absl::Status& status) {
          OnMet(number, partner, status);
          context_.steps.CallIsOver();
        });
  }

  void OnMet(uint32_t number, uint32_t partner, const absl::Status& status) {
    Block& block = blocks_[number];
    // The other worker is lost, or has not begun, or has ended.
    const bool gone = absl::IsUnavailable(status) || absl::IsFailedPrecondition(status) ||
                      absl::IsDeadlineExceeded(status);
    if (gone) {
      refused_at_[partner] = clock_ + 1;
      return Meet(number);
    }
    if (!status.ok()) return context_.steps.Fail(status);
    context_.meetings.Subtract(number, block.half, block.mixed);
    // Without this message the other worker would only keep its answer longer.
    context_.steps.CallBegins();
    context_.peers.Meet(
        partner, clock_, number, {}, [](const TransportReply&) { return absl::OkStatus(); },
        [this](const absl::Status&) { context_.steps.CallIsOver(); });
    context_.steps.Done(number);
  }

  const GossipContext context_;
  std::vector<Block> blocks_;
  uint64_t clock_ = 0;
  // By rank: the clock after the last one in which the worker was lost or would not meet.
  std::vector<std::atomic<uint64_t>> refused_at_;
};

}  // namespace

std::unique_ptr<GossipMix> MakeMeetings(const GossipContext& context) {
  return std::make_unique<Meetings>(context);
}

}  // namespace leeway
