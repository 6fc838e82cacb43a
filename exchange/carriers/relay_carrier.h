// Exchanges along a ring or a tree of all workers (relay_route.h), in sync mode. Of each block, a
// worker
// 1. fetches the sums of the workers before it, adds its own contribution, and publishes the sum;
//    the root, which holds the block, sends the mean to its own server instead, which updates it;
// 2. fetches the new weights from the worker before it, and publishes them for the next one.
//
// The sum of a block is sum_i w_i g_i, with w_i = n_i / n. Here n_i is the number of worker i's
// examples, and n the size of a batch. The root divides by sum_i w_i, and sends the learning-rate
// factors. All contributions that have examples have the same ones.
//
// In a sum, averaged elements (common/update/averaging.h) are k_i (b_i - r): r is the value with
// which the clock began, b_i is worker i's value, and k_i is the share by which its batches move r.
// The server moves r by a share k of the way to the root's contribution, so that contribution is
// r + sum_i w_i k_i (b_i - r) / (k sum_i w_i). It moves r as far as single contributions would.
//
// A worker keeps what it has published of the latest two clocks. If a worker dies, the others wait
// for its next life, which computes the same contribution and fetches the same sums. What that life
// no longer finds (OUT_OF_RANGE) belongs to blocks that are updated already: it reads these from
// their holders.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client/calls/parameter_client.h"
#include "client/calls/peer_calls.h"
#include "common/buffer.h"
#include "common/peers/outbox.h"
#include "common/update/averaging.h"
#include "common/update/clock_batches.h"
#include "exchange/carriers/carrier.h"
#include "exchange/carriers/peer_steps.h"
#include "exchange/carriers/relay_route.h"
#include "exchange/carriers/server_carrier.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

class RelayCarrier final : public Carrier {
 public:
  // The registration and the outbox outlive the carrier. Destroy the carrier after the client and
  // the peers, whose calls use it until they have ended. The job's topology is a ring or a tree.
  RelayCarrier(const v1::RegisterWorkerReply& registration, ParameterClient& client,
               PeerCalls& peers, Outbox& outbox, std::function<Time()> now);

  const BlockLayout& layout() const override { return client_.layout(); }
  FloatBuffer MakeVector() override { return client_.MakeVector(); }
  absl::StatusOr<std::optional<uint64_t>> Read(uint64_t clock, std::span<float> weights,
                                               Time deadline) override;
  absl::Status ReadLatest(std::span<float> weights) override { return reader_.ReadLatest(weights); }

  void Begin(uint64_t clock) override;
  void Contribute(BlockRange blocks, uint64_t examples, const ContributionRates& rates,
                  std::span<float> contribution, std::span<float> weights) override;
  absl::Status Finish() override { return steps_.status(); }
  absl::StatusOr<bool> Await(std::span<const ElementRange> elements, Time deadline) override {
    return steps_.Await(elements, deadline);
  }
  absl::StatusOr<bool> AwaitAll(Time deadline) override { return steps_.AwaitAll(deadline); }
  bool Abandon() override { return steps_.Abandon(peers_); }
  ExchangeReport End() override { return steps_.End(); }

  bool under_way() const override { return steps_.under_way(); }
  uint64_t clock() const override { return steps_.clock(); }

 private:
  // A block in the clock's exchange. One step of a block runs at a time.
  struct Block {
    RelayRoute route;
    ContributionRates rates = nullptr;
    // A number that stands for the rates of the contributions in the sum that have examples.
    uint64_t rates_code = 0;
    // This worker's contribution, or what stands for it in mean_: zeros if it was left out, and
    // with k_i (b_i - r) in averaged elements.
    std::span<const float> own = {};
    // The sum, in the outbox's memory.
    std::span<float> sum = {};
    // The number of sums that are added, and of the examples behind them.
    size_t added = 0;
    uint64_t examples = 0;
    // The examples and rates behind the sum that was fetched last.
    uint64_t fetched_examples = 0;
    uint64_t fetched_rates = 0;
    // The second and later sums. The first one is added as it is read.
    std::vector<float> fetched = {};
  };
  // What Contribute was given, the same for all blocks of a clock.
  struct Given {
    uint64_t examples = 0;
    std::span<float> contribution = {};
    std::span<float> weights = {};
  };

  PieceName NameOf(v1::Piece piece, uint32_t block) const { return {piece, clock(), block}; }
  std::span<float> Of(uint32_t block, std::span<float> vector) const;
  // Returns w_i for this many examples.
  float WeightOf(uint64_t examples) const;

  // Finds this worker's term of the block's sum.
  void TakeOwn(uint32_t block);
  void FetchSum(uint32_t block);
  absl::Status AddSum(uint32_t block, const TransportReply& reply);
  absl::Status OtherRates(uint32_t block) const;
  void OnSum(uint32_t block, const absl::Status& status);
  // Publishes the block's sum or, at the root, sends the mean.
  void HandOn(uint32_t block);
  // Returns the rates of the contributions in the sum.
  absl::StatusOr<ContributionRates> RatesOfSum(uint32_t block) const;
  // Writes the mean of all contributions to mean_.
  void MakeMean(uint32_t block);
  void FetchWeights(uint32_t block);
  // Reads the block's new weights from its holder.
  void PullWeights(uint32_t block);
  void OnWeights(uint32_t block, const absl::Status& status);

  ParameterClient& client_;
  PeerCalls& peers_;
  Outbox& outbox_;
  const uint32_t rank_;
  const uint64_t trained_;
  const std::vector<AveragedElements> averaged_;
  const ClockBatches batches_;
  ServerCarrier reader_;
  // The means that the root sends. A program may look at its contribution again, so that stays as
  // it is.
  FloatBuffer mean_;
  bool read_ = false;
  // Empty until the clock's first block is handed in.
  std::optional<Given> given_;
  std::vector<Block> blocks_;
  PeerSteps steps_;
};

}  // namespace leeway
