#include "tests/sim/set_history.h"

#include <algorithm>
#include <utility>

#include "tests/sim/values.h"

namespace leeway::sim {

const SetHistory::Generation* SetHistory::Find(uint64_t generation) const {
  const auto found = std::find_if(generations_.begin(), generations_.end(),
                                  [&](const Generation& g) { return g.number == generation; });
  return found == generations_.end() ? nullptr : &*found;
}

void SetHistory::Begin(const Shape& shape, uint64_t generation, uint64_t clock) {
  if (Find(generation) != nullptr) return;
  Generation next{generation, {}};
  if (generations_.empty() || clock == 0) {
    State first;
    for (uint32_t b = 0; b < shape.blocks; ++b) first.blocks[b].values = FirstValues(b);
    next.states.push_back(first);
  } else {
    const std::vector<State>& before = generations_.back().states;
    const auto end =
        before.begin() + static_cast<std::ptrdiff_t>(std::min<uint64_t>(clock + 1, before.size()));
    next.states.assign(before.begin(), end);
    next.states.back().set.reset();
  }
  generations_.push_back(std::move(next));
}

bool SetHistory::Commit(const Shape& shape, uint64_t generation, uint64_t clock, uint64_t ranks) {
  Generation* const known = const_cast<Generation*>(Find(generation));
  if (known == nullptr || clock >= known->states.size()) return false;
  std::optional<uint64_t>& set = known->states[clock].set;
  if (set) return *set == ranks;
  set = ranks;
  uint64_t read = 0;
  State next = known->states[clock];
  next.set.reset();
  for (uint32_t b = 0; !shape.elastic && b < shape.blocks; ++b) {
    read = Mix(read, next.blocks[b].values);
  }
  for (uint32_t b = 0; b < shape.blocks; ++b) {
    Version& version = next.blocks[b];
    ++version.number;
    for (uint32_t r = 0; r < shape.workers; ++r) {
      if ((ranks >> r & 1) == 0) continue;
      version.values = Mix(version.values, ContributionValue(r, clock, b, read));
      version.clocks[r] |= uint64_t{1} << clock;
    }
  }
  known->states.push_back(next);
  return true;
}

std::optional<uint64_t> SetHistory::SetOf(uint64_t generation, uint64_t clock) const {
  const Generation* const known = Find(generation);
  if (known == nullptr || clock >= known->states.size()) return std::nullopt;
  return known->states[clock].set;
}

bool SetHistory::Is(uint64_t generation, uint32_t block, const Version& version) const {
  const Generation* const known = Find(generation);
  return known != nullptr && version.number < known->states.size() &&
         known->states[version.number].blocks[block] == version;
}

}  // namespace leeway::sim
