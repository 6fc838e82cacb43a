// A shard's update of a block, from the decision to the next version.
#include <algorithm>
#include <utility>

#include "server/shard/shard.h"

namespace leeway {

void Shard::KeepBefore(Slot& slot, const Update& update) {
  auto reader = slot.readers.find(update.contributions.front());
  if (reader == slot.readers.end() || !reader->second.wants_values) return;
  reader->second.before = store_.CurrentWeights(slot.block);
  reader->second.sent_before = slot.sent;
}

bool Shard::Awaits(const Slot& slot) const {
  if (replicates_ || encoder_.encoding(slot.block) != v1::ENCODING_RAW) return true;
  return std::any_of(slot.readers.begin(), slot.readers.end(),
                     [](const auto& reader) { return reader.second.wants_values; });
}

Shard::Outbox Shard::Run(Slot& slot, Running running) {
  const auto rates = check_.CommonRates(slot.block, running.contributions);
  if (!rates.ok()) return RejectAll(slot, std::move(running), rates.status());
  const ContributionWeights weights = scale_.WeightsOf(running.contributions);
  // The update changes no value if no contribution has both examples and values. (A contribution
  // has no values if it is part of another one, or skips the block.)
  const bool skip = !scale_.elastic() &&
                    std::all_of(weights.begin(), weights.end(),
                                [](const ContributionWeight& w) { return w.trained == 0.0f; });
  // This needs no lock, because only the running update writes the block's values.
  BlockWrite write;
  bool finite = true;
  if (skip) {
    finite = NotFinite(slot, running).empty();
  } else {
    write = store_.Begin(slot.block);
    write.awaited = running.awaited;
    absl::InlinedVector<const FloatPayload*, 1> payloads;
    for (const Contribution& each : running.contributions) {
      if (each.has_values()) payloads.push_back(&each.payload);
    }
    finite = store_.Run(slot.block, write, payloads, weights, running.step, *rates);
  }
  if (!finite) return RejectNotFinite(slot, std::move(running), write);
  // Even if the values do not change, a compressed block may have changes that were not sent yet.
  const SharedFloats next = skip ? store_.CurrentWeights(slot.block) : write.weights_out;
  SentVersion sent = encoder_.Next(slot.block, running.sent_before, next.span());
  updates_applied_.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(slot.mutex);
  skip ? store_.Skip(slot.block) : store_.Commit(slot.block, std::move(write));
  if (scale_.sync()) slot.previously_sent = std::move(slot.sent);
  slot.sent = std::move(sent);
  Outbox outbox = Act(slot, slot.core.OnApplied());
  admission_.OnVersion(IndexOf(slot.block), slot.core.progress().version);
  return outbox;
}

std::vector<Refusal> Shard::NotFinite(const Slot& slot, const Running& running) const {
  std::vector<Refusal> refusals;
  for (size_t i = 0; i < running.requests.size(); ++i) {
    absl::Status status = check_.Finite(slot.block, running.contributions[i]);
    if (!status.ok()) refusals.push_back({running.requests[i], std::move(status)});
  }
  return refusals;
}

void Shard::TellRefused(const Running& running, const std::vector<Refusal>& refusals) const {
  if (!contributions_) return;
  for (size_t i = 0; i < running.requests.size(); ++i) {
    const bool refused = std::any_of(refusals.begin(), refusals.end(), [&](const Refusal& refusal) {
      return refusal.request == running.requests[i];
    });
    const Contribution& contribution = running.contributions[i];
    if (refused) contributions_->OnRefused(contribution.rank, contribution.clock);
  }
}

Shard::Outbox Shard::RejectNotFinite(Slot& slot, Running running, const BlockWrite& write) {
  std::vector<Refusal> refusals = NotFinite(slot, running);
  const bool overflows = refusals.empty();
  for (size_t i = 0; overflows && i < running.requests.size(); ++i) {
    refusals.push_back(
        {running.requests[i], check_.Overflow(slot.block, running.contributions[i], write)});
  }
  return Reject(slot, std::move(running), refusals);
}

Shard::Outbox Shard::RejectAll(Slot& slot, Running running, const absl::Status& why) {
  std::vector<Refusal> refusals;
  for (const RequestId request : running.requests) refusals.push_back({request, why});
  return Reject(slot, std::move(running), refusals);
}

Shard::Outbox Shard::Reject(Slot& slot, Running running, const std::vector<Refusal>& refusals) {
  TellRefused(running, refusals);
  MutexLock lock(slot.mutex);
  for (size_t i = 0; i < running.requests.size(); ++i) {
    slot.contributions[running.requests[i]] = std::move(running.contributions[i]);
  }
  for (const Refusal& refusal : refusals) slot.contributions.erase(refusal.request);
  return Act(slot, slot.core.OnRejected(refusals));
}

}  // namespace leeway
