// Handles committed sets in sync mode: the driver says which contributions make up a clock.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/core/block_core.h"

namespace leeway {

Decisions BlockCore::OnCommitted(uint64_t clock, const std::vector<uint32_t>& ranks) {
  Decisions decisions;
  const bool known = clock < progress_.version || sets_.contains(clock);
  if (!rules_.committed_sets || !initialized_ || known) return decisions;
  sets_[clock] = ranks;
  DropOthers(decisions);
  BeginUpdate(decisions);
  return decisions;
}

void BlockCore::DropOthers(Decisions& decisions) {
  if (Set() == nullptr) return;
  const uint64_t clock = progress_.version;
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!InSet(rank)) ranks_[rank].next = std::max(ranks_[rank].next, clock + 1);
  }
  std::erase_if(pending_, [&](const Pending& held) {
    if (InSet(held.rank)) return false;
    decisions.dropped.push_back(held.request);
    return true;
  });
  std::erase_if(waiters_, [&](const Waiter& waiter) {
    if (!waiter.contributes || waiter.reader->clock != clock + 1 || InSet(waiter.reader->rank)) {
      return false;
    }
    decisions.refusals.push_back({waiter.request, Overtaken(waiter.reader->rank, clock)});
    return true;
  });
}

const std::vector<uint32_t>* BlockCore::Set() const {
  const auto set = sets_.find(progress_.version);
  return set == sets_.end() ? nullptr : &set->second;
}

bool BlockCore::InSet(uint32_t rank) const {
  const std::vector<uint32_t>& set = *Set();
  return std::binary_search(set.begin(), set.end(), rank);
}

bool BlockCore::IsLate(const Sender& sender) const {
  if (!rules_.committed_sets) return false;
  if (sender.clock < progress_.version) return counted(sender.rank) != sender.clock + 1;
  return sender.clock == progress_.version && Set() != nullptr && !InSet(sender.rank);
}

absl::Status BlockCore::Overtaken(uint32_t rank, uint64_t wanted) const {
  return absl::AlreadyExistsError(
      absl::StrCat("header.clock: worker ", rank, " is too late with clock ", wanted, " for block ",
                   block_, ", which the other workers have brought to version ", progress_.version,
                   " without it; attach again, and continue at the clock in the answer"));
}

bool BlockCore::IsComplete() const {
  if (!rules_.committed_sets) {
    return pending_.size() == ranks_.size() || pending_.front().of_all;
  }
  const std::vector<uint32_t>* set = Set();
  return set != nullptr && pending_.size() == set->size();
}

}  // namespace leeway
