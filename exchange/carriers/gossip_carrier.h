// Gossip: each worker trains weights x of its own, and mixes them with those of some other workers
// (gossip_mix.h). It carries a delta exchange: the contribution is the change of x in the clock's
// steps, and the answer is the new x. The blocks hold the mean of all x (gossip_mean.h).
//
// In sync mode the worker sends x before the mixing to the mean, in async mode after its meeting.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "client/calls/parameter_client.h"
#include "client/calls/peer_calls.h"
#include "common/buffer.h"
#include "common/peers/meeting_place.h"
#include "common/peers/outbox.h"
#include "exchange/carriers/carrier.h"
#include "exchange/carriers/gossip_mean.h"
#include "exchange/carriers/gossip_mix.h"
#include "exchange/carriers/peer_steps.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

class GossipCarrier final : public Carrier {
 public:
  // The registration, the outbox and the meetings outlive the carrier. Destroy the carrier after
  // the client and the peers, whose calls use it until they have ended.
  GossipCarrier(const v1::RegisterWorkerReply& registration, ParameterClient& client,
                PeerCalls& peers, Outbox& outbox, MeetingPlace& meetings,
                std::function<Time()> now);

  const BlockLayout& layout() const override { return client_.layout(); }
  FloatBuffer MakeVector() override { return peers_.MakeVector(); }
  // Both read the mean. ReadLatest ends this worker's meetings.
  absl::StatusOr<std::optional<uint64_t>> Read(uint64_t clock, std::span<float> weights,
                                               Time deadline) override;
  absl::Status ReadLatest(std::span<float> weights) override;

  void Begin(uint64_t clock) override;
  // Writes to the contribution. `rates` must be null.
  void Contribute(BlockRange blocks, uint64_t examples, const ContributionRates& rates,
                  std::span<float> contribution, std::span<float> weights) override;
  absl::Status Finish() override;
  absl::StatusOr<bool> Await(std::span<const ElementRange> elements, Time deadline) override {
    return steps_.Await(elements, deadline);
  }
  absl::StatusOr<bool> AwaitAll(Time deadline) override;
  bool Abandon() override;
  ExchangeReport End() override;

  bool under_way() const override { return steps_.under_way(); }
  uint64_t clock() const override { return steps_.clock(); }
  // In async mode a new life goes on from the mean.
  bool keeps_weights() const override { return sync_; }
  std::span<const float> mean() const override { return mean_.mean(); }

 private:
  const bool sync_;
  ParameterClient& client_;
  PeerCalls& peers_;
  GossipMean mean_;
  PeerSteps steps_;
  const std::unique_ptr<GossipMix> mix_;
  bool opened_ = false;
  // What Contribute was given.
  uint64_t examples_ = 0;
  std::span<float> contribution_, weights_;
};

}  // namespace leeway
