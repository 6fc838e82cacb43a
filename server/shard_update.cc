// A shard's update of a block, from the decision to the next version.
#include <algorithm>
#include <utility>

#include "common/update/combine.h"
#include "server/shard.h"

namespace leeway {

Shard::Running Shard::Begin(Slot& slot, const Update& update) {
  Running running;
  if (elastic_ && !sync_) {
    auto reader = slot.readers.find(update.contributions.front());
    if (reader != slot.readers.end()) {
      reader->second.before = store_.CurrentWeights(slot.block);
      reader->second.sent_before = slot.sent;
    }
  }
  running.requests = update.contributions;
  for (RequestId request : running.requests) {
    running.contributions.push_back(std::move(slot.contributions.extract(request).mapped()));
  }
  running.coefficients = Coefficients(running.contributions);
  running.skip = !elastic_ && std::all_of(running.coefficients.begin(), running.coefficients.end(),
                                          [](float c) { return c == 0.0f; });
  running.step.number = slot.core.progress().version + 1;
  if (schedule_.has_value()) {
    running.step.learning_rate = schedule_->LearningRate(ScheduleClock(slot, update));
  }
  if (!running.skip) {
    running.write = store_.Begin(slot.block);
    running.write.awaited = Awaits(slot);
  }
  running.sent_before = slot.sent;
  return running;
}

bool Shard::Awaits(const Slot& slot) const {
  if (replicates_ || encoder_.encoding(slot.block) != v1::ENCODING_RAW) return true;
  return std::any_of(slot.readers.begin(), slot.readers.end(),
                     [](const auto& reader) { return reader.second.wants_values; });
}

uint64_t Shard::ScheduleClock(const Slot& slot, const Update& update) const {
  return ends_by_sum_ ? slot.core.progress().version / workers_ : update.clock;
}

// One aggregate is the mean over all examples behind it; a contribution applied alone weighs by its
// examples against the ordinary number.
absl::InlinedVector<float, 1> Shard::Coefficients(
    const std::vector<Contribution>& contributions) const {
  if (!sync_) {
    return {static_cast<float>(contributions.front().examples / nominal_examples_)};
  }
  std::vector<uint64_t> examples;
  for (const Contribution& contribution : contributions) examples.push_back(contribution.examples);
  const std::vector<float> shares = MeanCoefficients(examples);
  return {shares.begin(), shares.end()};
}

std::vector<Refusal> Shard::Run(const Slot& slot, Running& running) const {
  if (running.skip) {
    std::vector<Refusal> refusals = NotFinite(slot, running);
    if (refusals.empty() && encoder_.encoding(slot.block) != v1::ENCODING_RAW) {
      // Of values that stay changes may still be on their way; nobody else writes them meanwhile.
      const SharedFloats weights = store_.CurrentWeights(slot.block);
      running.sent = encoder_.Next(slot.block, running.sent_before, weights.span());
    }
    return refusals;
  }
  absl::InlinedVector<const FloatPayload*, 1> payloads;
  for (const Contribution& contribution : running.contributions) {
    payloads.push_back(&contribution.payload);
  }
  if (store_.Run(slot.block, running.write, payloads, running.coefficients, running.step)) {
    running.sent = encoder_.Next(slot.block, running.sent_before, running.write.weights_out.span());
    return {};
  }
  std::vector<Refusal> refusals = NotFinite(slot, running);
  if (!refusals.empty()) return refusals;
  for (size_t i = 0; i < running.requests.size(); ++i) {
    refusals.push_back({running.requests[i],
                        check_.Overflow(slot.block, running.contributions[i], running.write)});
  }
  return refusals;
}

std::vector<Refusal> Shard::NotFinite(const Slot& slot, const Running& running) const {
  std::vector<Refusal> refusals;
  for (size_t i = 0; i < running.requests.size(); ++i) {
    absl::Status status = check_.Finite(slot.block, running.contributions[i]);
    if (!status.ok()) refusals.push_back({running.requests[i], std::move(status)});
  }
  return refusals;
}

Shard::Outbox Shard::Commit(Slot& slot, Running running) {
  updates_applied_.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(slot.mutex);
  if (running.skip) {
    store_.Skip(slot.block);
  } else {
    store_.Commit(slot.block, std::move(running.write));
  }
  if (sync_) slot.previously_sent = std::move(slot.sent);
  slot.sent = std::move(running.sent);
  Outbox outbox = Act(slot, slot.core.OnApplied());
  admission_.OnVersion(IndexOf(slot.block), slot.core.progress().version);
  return outbox;
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
