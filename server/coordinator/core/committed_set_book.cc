#include "server/coordinator/core/committed_set_book.h"

#include <algorithm>

namespace leeway {

void CommittedSetBook::Restart(uint64_t clock, const std::vector<uint32_t>& shards) {
  next_ = clock;
  latest_.reset();
  shards_.clear();
  whole_.clear();
  for (const uint32_t shard : shards) shards_.push_back({shard, {}});
}

void CommittedSetBook::OnHeld(uint32_t shard, uint64_t clock, const std::vector<uint32_t>& ranks,
                              const std::vector<Time>& since) {
  if (clock != next_) return;
  for (Shard& each : shards_) {
    if (each.number != shard) continue;
    for (size_t i = 0; i < ranks.size(); ++i) {
      const Time at = i < since.size() ? since[i] : Time::min();
      if (!each.ranks.emplace(ranks[i], at).second) continue;
      if (const auto whole = Everywhere(ranks[i])) whole_.emplace(ranks[i], *whole);
    }
  }
}

void CommittedSetBook::Forget(uint32_t shard) {
  for (Shard& each : shards_) {
    if (each.number != shard) continue;
    each.ranks.clear();
    whole_.clear();
  }
}

std::optional<Time> CommittedSetBook::Everywhere(uint32_t rank) const {
  Time latest = Time::min();
  for (const Shard& shard : shards_) {
    const auto held = shard.ranks.find(rank);
    if (held == shard.ranks.end()) return std::nullopt;
    latest = std::max(latest, held->second);
  }
  return latest;
}

std::vector<uint32_t> CommittedSetBook::Missing(const std::vector<bool>& wanted) const {
  std::vector<uint32_t> missing;
  for (uint32_t rank = 0; rank < wanted.size(); ++rank) {
    if (wanted[rank] && !whole_.contains(rank)) missing.push_back(rank);
  }
  return missing;
}

bool CommittedSetBook::Enough(const std::vector<bool>& wanted, uint32_t backup) const {
  const auto all = static_cast<size_t>(std::count(wanted.begin(), wanted.end(), true));
  const size_t missing = Missing(wanted).size();
  return missing < all && missing <= backup;
}

std::vector<Time> CommittedSetBook::Arrivals() const {
  std::vector<Time> arrivals;
  for (const auto& [rank, at] : whole_) {
    if (at > Time::min()) arrivals.push_back(at);
  }
  return arrivals;
}

std::optional<CommitSet> CommittedSetBook::Take(const std::vector<bool>& wanted, uint32_t backup) {
  if (!Enough(wanted, backup)) return std::nullopt;
  CommitSet set;
  for (const auto& [rank, at] : whole_) {
    if (rank < wanted.size()) set.ranks.push_back(rank);
  }
  set.clock = next_++;
  for (Shard& shard : shards_) shard.ranks.clear();
  whole_.clear();
  latest_ = set;
  return set;
}

}  // namespace leeway
