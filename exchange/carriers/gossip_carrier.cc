#include "exchange/carriers/gossip_carrier.h"

#include <utility>

#include "common/status.h"

namespace leeway {

GossipCarrier::GossipCarrier(const v1::RegisterWorkerReply& registration, ParameterClient& client,
                             PeerCalls& peers, Outbox& outbox, MeetingPlace& meetings,
                             std::function<Time()> now)
    : sync_(registration.job().consistency().mode() == v1::CONSISTENCY_MODE_SYNC),
      client_(client),
      peers_(peers),
      mean_(registration, client, now),
      steps_(client.layout(), std::move(now)),
      mix_((sync_ ? MakeNeighbourMix : MakeMeetings)(
          {registration, client.layout(), peers, outbox, meetings, steps_})) {}

absl::StatusOr<std::optional<uint64_t>> GossipCarrier::Read(uint64_t clock,
                                                            std::span<float> weights,
                                                            Time deadline) {
  ASSIGN_OR_RETURN(const auto version, mean_.Read(clock, weights, deadline));
  if (version && sync_ && !std::exchange(opened_, true)) mix_->Open(clock, weights);
  return version;
}

absl::Status GossipCarrier::ReadLatest(std::span<float> weights) {
  if (opened_) mix_->End();
  return mean_.ReadLatest(weights);
}

void GossipCarrier::Begin(uint64_t clock) {
  // In async mode others meet a worker only once it trains. It began with the mean.
  if (!std::exchange(opened_, true)) mix_->Open(clock, mean_.mean());
  mean_.Begin(clock);
  mix_->Begin(clock);
  steps_.Begin(clock);
}

void GossipCarrier::Contribute(BlockRange blocks, uint64_t examples, const ContributionRates&,
                               std::span<float> contribution, std::span<float> weights) {
  examples_ = examples;
  contribution_ = contribution;
  weights_ = weights;
  for (uint32_t block = blocks.first; block < blocks.first + blocks.count; ++block) {
    const ElementRange range = layout().Range(block);
    steps_.Start(block);
    mix_->Take(block, contribution.subspan(range.offset, range.count),
               weights.subspan(range.offset, range.count));
  }
}

absl::Status GossipCarrier::Finish() {
  if (sync_) RETURN_IF_ERROR(mean_.Tell(contribution_, examples_));
  return steps_.status();
}

absl::StatusOr<bool> GossipCarrier::AwaitAll(Time deadline) {
  ASSIGN_OR_RETURN(const bool answered, steps_.AwaitAll(deadline));
  if (!answered || !mean_.is_awaited()) return answered;
  if (!mean_.is_told()) RETURN_IF_ERROR(mean_.Tell(weights_, examples_));
  return mean_.Await(deadline);
}

bool GossipCarrier::Abandon() {
  const bool goes_on = steps_.Abandon(peers_);
  mean_.Settle();
  return goes_on;
}

ExchangeReport GossipCarrier::End() {
  ExchangeReport report = steps_.End();
  if (!sync_) report.version = mean_.version();
  if (mean_.is_mean()) report.mean_distance = mean_.DistanceOf(weights_);
  return report;
}

}  // namespace leeway
