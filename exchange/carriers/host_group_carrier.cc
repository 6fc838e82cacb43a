#include "exchange/carriers/host_group_carrier.h"

#include <utility>

#include "common/status.h"

namespace leeway {

FloatBuffer HostGroupCarrier::MakeVector() {
  return group_.leads() ? ServerCarrier::MakeVector() : group_.Vector();
}

void HostGroupCarrier::Renew() {
  if (!group_.leads()) group_.Withdraw();
}

void HostGroupCarrier::Contribute(BlockRange blocks, uint64_t examples,
                                  const ContributionRates& rates, std::span<float> contribution,
                                  std::span<float> weights) {
  NoteFirst();
  if (group_.leads()) {
    kept_.push_back({blocks, examples, contribution, weights});
    SendComplete().IgnoreError();
  } else {
    group_.Publish(clock(), examples, blocks);
    Add(blocks, client().PushPullCombined(clock(), weights, blocks));
  }
}

absl::Status HostGroupCarrier::SendComplete() {
  if (kept_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(group_.Refresh());
  for (Kept& kept : kept_) RETURN_IF_ERROR(SendComplete(kept));
  std::erase_if(kept_, [](const Kept& kept) { return kept.blocks.count == 0; });
  return absl::OkStatus();
}

absl::Status HostGroupCarrier::SendComplete(Kept& kept) {
  const uint32_t end = kept.blocks.first + kept.blocks.count;
  // Neighbouring blocks that are sent in the same way go into one call.
  HostGroup::Combined leaving;
  uint32_t first = kept.blocks.first;
  const auto leave = [&](uint32_t before) {
    const BlockRange blocks{first, before - first};
    if (blocks.count == 0) return;
    Add(blocks, leaving.outcome == HostGroup::Outcome::kPassed
                    ? client().PushPullCombined(clock(), kept.weights, blocks)
                    : client().PushPull(clock(), leaving.examples, kept.contribution, kept.weights,
                                        blocks));
    first = before;
  };
  absl::Status status;
  uint32_t block = first;
  for (; block < end; ++block) {
    const auto combined =
        group_.Combine(clock(), block, kept.examples, kept.contribution, kept.weights);
    status = combined.status();
    if (!status.ok() || combined->outcome == HostGroup::Outcome::kMissing) break;
    if (*combined != leaving) leave(block);
    leaving = *combined;
  }
  leave(block);
  kept.blocks = {block, end - block};
  return status;
}

absl::Status HostGroupCarrier::Finish() {
  const Time began = now();
  absl::Status status = SendComplete();
  while (status.ok() && !kept_.empty()) {
    status = group_.Pause(clock(), began);
    if (status.ok()) status = SendComplete();
  }
  NoteWait(now() - began);
  return status;
}

void HostGroupCarrier::Poll() {
  SendComplete().IgnoreError();
  ServerCarrier::Poll();
}

bool HostGroupCarrier::Abandon() {
  kept_.clear();
  return ServerCarrier::Abandon();
}

std::unique_ptr<Carrier> MakeServerCarrier(ParameterClient& client, HostGroup* group,
                                           std::function<Time()> now) {
  if (group == nullptr) return std::make_unique<ServerCarrier>(client, std::move(now));
  return std::make_unique<HostGroupCarrier>(client, *group, std::move(now));
}

}  // namespace leeway
