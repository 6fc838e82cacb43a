// Sends versions to the replica of a shard, and keeps answers back until the replica has these
// versions.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/shard/shard.h"

namespace leeway {
void Shard::SetReplica(std::shared_ptr<ReplicaSink> replica) {
  replicates_ = replica != nullptr;
  for (const auto& slot : slots_) {
    Answers open;
    {
      MutexLock lock(slot->mutex);
      slot->replica = replica;
      slot->replicated.clear();
      replica != nullptr ? slot->gate.Attach() : slot->gate.Detach();
      open = TakeOpen(*slot);
    }
    for (Leaving& answer : open) answer.done(std::move(answer.result));
    Replicate(*slot);
  }
}

bool Shard::replica_synced() const {
  for (const auto& slot : slots_) {
    MutexLock lock(slot->mutex);
    if (!slot->gate.synced()) return false;
  }
  return true;
}

void Shard::HoldBack(Slot& slot, Answers& answers) {
  // The replica need not know anything about a refusal.
  const auto held = std::stable_partition(
      answers.begin(), answers.end(), [](const Leaving& answer) { return !answer.result.ok(); });
  if (held == answers.end()) return;
  slot.gated.push_back({slot.core.progress().version, std::nullopt, {}});
  std::move(held, answers.end(), std::back_inserter(slot.gated.back().answers));
  answers.erase(held, answers.end());
}

Shard::Answers Shard::TakeOpen(Slot& slot) {
  Answers open;
  while (!slot.gated.empty() && slot.gate.IsOpen(slot.gated.front().version)) {
    Answers& answers = slot.gated.front().answers;
    std::move(answers.begin(), answers.end(), std::back_inserter(open));
    slot.gated.pop_front();
  }
  return open;
}

void Shard::GiveUpGated(Slot& slot, uint64_t since, Outbox& outbox) {
  // The first Tick that sees an answer marks it. A Tick at least kWaitTicks later refuses the
  // request.
  for (Gated& gated : slot.gated) {
    if (!gated.seen) gated.seen = since;
    if (!closed_ && since < *gated.seen + kWaitTicks) continue;
    gated.seen = since;
    const std::string why = WaitsForReplica(slot, gated.version);
    Answers stay;
    for (Leaving& answer : gated.answers) {
      if (!closed_ && answer.patience.stays()) {
        outbox.reminders.emplace_back(answer.patience, why);
        stay.push_back(std::move(answer));
      } else {
        outbox.answers.push_back({std::move(answer.done), absl::UnavailableError(absl::StrCat(
                                                              why, "; send the request again"))});
      }
    }
    gated.answers = std::move(stay);
  }
  std::erase_if(slot.gated, [](const Gated& gated) { return gated.answers.empty(); });
}

void Shard::Replicate(Slot& slot) {
  std::shared_ptr<ReplicaSink> replica;
  HeldBlock held;
  {
    MutexLock lock(slot.mutex);
    const bool due = slot.replica != nullptr && slot.core.initialized() && !closed_ &&
                     slot.gate.TakeSend(slot.core.progress().version);
    if (!due) return;
    replica = slot.replica;
    held = {slot.block, ValuesOf(slot), slot.core.progress()};
    if (scale_.sync() && slot.gate.NeedsPrevious(held.progress.version))
      held.previous = PreviousOf(slot);
  }
  std::vector<uint64_t> clocks = held.progress.clocks;
  replica->Send(std::move(held), [self = shared_from_this(), &slot, sink = replica.get(),
                                  clocks = std::move(clocks)](const absl::Status& status) mutable {
    self->OnReplicated(slot, sink, std::move(clocks), status);
  });
}

SharedFloats Shard::PreviousOf(const Slot& slot) const {
  const bool changes = encoder_.keeps_shadows() && slot.previously_sent.shadow;
  return changes ? slot.previously_sent.shadow : store_.PreviousWeights(slot.block);
}

void Shard::OnReplicated(Slot& slot, const ReplicaSink* replica, std::vector<uint64_t> clocks,
                         const absl::Status& status) {
  Answers open;
  {
    MutexLock lock(slot.mutex);
    // This report is from a replica that has been replaced.
    if (slot.replica.get() != replica) return;
    slot.gate.OnSent(status.ok(), slot.core.progress().version);
    if (status.ok()) {
      // Answers that left before the gate closed cannot be taken back. The replica may take over
      // only once it also has the contributions that these answers acknowledged.
      if (slot.replicated.empty()) slot.replicated = slot.core.progress().clocks;
      for (size_t rank = 0; rank < clocks.size(); ++rank) {
        slot.replicated[rank] = std::max(slot.replicated[rank], clocks[rank]);
      }
    }
    open = TakeOpen(slot);
  }
  for (Leaving& answer : open) answer.done(std::move(answer.result));
  // After a failure nothing is sent here. The next Tick sends the version again, or another replica
  // takes over.
  if (status.ok()) Replicate(slot);
}

}  // namespace leeway
