#include "server/core/held_book.h"

#include <utility>

namespace leeway {

HeldBook::HeldBook(const Rules& rules) : rules_(rules) {}

void HeldBook::OnLoaded(uint64_t version) {
  if (version > open_) ++loaded_[version];
}

uint32_t HeldBook::BlocksAt(uint64_t clock) const {
  uint32_t beyond = 0;
  for (auto each = loaded_.upper_bound(clock); each != loaded_.end(); ++each)
    beyond += each->second;
  return rules_.blocks - beyond;
}

bool HeldBook::OnAccepted(uint32_t rank, uint64_t clock, Time now) {
  if (clock < open_ || rank >= rules_.workers) return false;
  Clock& held = clocks_[clock];
  const bool everywhere = ++held.blocks[rank] >= BlocksAt(clock);
  if (!everywhere || !held.whole.emplace(rank, now).second) return false;
  held.changed = true;
  return true;
}

void HeldBook::OnRefused(uint32_t rank, uint64_t clock) {
  if (clock + 1 != open_ || rank >= rules_.workers) return;
  if (refused_.insert(rank).second) tells_refused_ = true;
}

void HeldBook::OnLive(uint32_t rank, bool live) {
  if (rank >= rules_.workers) return;
  if (live) {
    lost_.erase(rank);
  } else {
    lost_.insert(rank);
  }
}

void HeldBook::OnCommitted(uint64_t clock) {
  if (clock < open_) return;
  open_ = clock + 1;
  refused_.clear();
  tells_refused_ = false;
  clocks_.erase(clocks_.begin(), clocks_.lower_bound(open_));
  loaded_.erase(loaded_.begin(), loaded_.upper_bound(open_));
}

bool HeldBook::Enough(const Clock& clock) const {
  size_t wanted = rules_.workers;
  size_t held = clock.whole.size();
  for (auto lost = lost_.begin(); rules_.live_only && lost != lost_.end(); ++lost) {
    --wanted;
    held -= clock.whole.count(*lost);
  }
  return held > 0 && held + rules_.backup >= wanted;
}

std::optional<HeldClock> HeldBook::Take(Time now) {
  if (std::exchange(tells_refused_, false)) {
    return HeldClock{.clock = open_, .refused = {refused_.begin(), refused_.end()}};
  }
  if (clocks_.empty()) return std::nullopt;
  auto& [number, clock] = *clocks_.begin();
  if (!clock.changed || !Enough(clock)) return std::nullopt;
  HeldClock held{number, {}, clock.told};
  clock.changed = false;
  clock.told = true;
  for (const auto& [rank, since] : clock.whole) {
    held.ranks.push_back(rank);
    held.held.push_back(now - since);
  }
  return held;
}

void HeldBook::TellAgain() {
  tells_refused_ = !refused_.empty();
  if (clocks_.empty()) return;
  Clock& clock = clocks_.begin()->second;
  clock.changed = clock.changed || clock.told;
}

}  // namespace leeway
