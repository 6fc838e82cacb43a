#include "common/loss_scale.h"

#include <algorithm>

namespace leeway {

uint32_t LossScaleHistory::At(uint64_t clock) const {
  Entry holds{.clock = 0, .log2 = kLossScaleStart};
  for (const Entry& entry : entries_) {
    if (entry.clock > clock) break;
    holds = entry;
  }
  const uint64_t doubled = (clock - holds.clock) / kLossScaleDoublesAfter;
  return static_cast<uint32_t>(std::min<uint64_t>(kLossScaleMost, holds.log2 + doubled));
}

bool LossScaleHistory::Add(const Entry& entry) {
  const auto later = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& known) { return known.clock >= entry.clock; });
  if (later != entries_.end() && *later == entry) return false;
  entries_.erase(later, entries_.end());
  if (entries_.size() == kEntriesMax) entries_.erase(entries_.begin());
  entries_.push_back(entry);
  return true;
}

LossScaleHistory::Entry LossScaleHistory::Halve(uint64_t clock) {
  const Entry next{.clock = clock + 1, .log2 = At(clock) - 1};
  Add(next);
  return next;
}

void StepLossScale::Halve() {
  --log2;
  clean = 0;
}

void StepLossScale::Keep() {
  if (++clean < kLossScaleDoublesAfter) return;
  clean = 0;
  log2 = std::min(log2 + 1, kLossScaleMost);
}

}  // namespace leeway
