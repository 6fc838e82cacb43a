#include "server/coordinator/quorum_book.h"

#include <algorithm>
#include <utility>

namespace leeway {

void QuorumBook::Restart(uint64_t clock, const std::vector<uint32_t>& servers) {
  next_ = clock;
  latest_.reset();
  servers_.clear();
  for (const uint32_t server : servers) servers_.push_back({server, {}});
}

void QuorumBook::OnHeld(uint32_t server, uint64_t clock, const std::vector<uint32_t>& ranks) {
  if (clock != next_) return;
  for (Server& each : servers_) {
    if (each.number == server) each.ranks.insert(ranks.begin(), ranks.end());
  }
}

std::optional<CommitSet> QuorumBook::Take(const std::vector<bool>& wanted, uint32_t backup) {
  if (servers_.empty()) return std::nullopt;
  CommitSet set;
  size_t held = 0;
  for (const uint32_t rank : servers_.front().ranks) {
    const bool everywhere =
        std::all_of(servers_.begin(), servers_.end(),
                    [rank](const Server& server) { return server.ranks.contains(rank); });
    if (!everywhere || rank >= wanted.size()) continue;
    set.ranks.push_back(rank);
    if (wanted[rank]) ++held;
  }
  const auto all = static_cast<size_t>(std::count(wanted.begin(), wanted.end(), true));
  if (held == 0 || held + backup < all) return std::nullopt;
  set.clock = next_++;
  for (Server& server : servers_) server.ranks.clear();
  latest_ = set;
  return set;
}

}  // namespace leeway
