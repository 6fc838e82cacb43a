#include "tests/sim/set_history.h"

#include <algorithm>
#include <utility>

#include "tests/sim/values.h"

namespace leeway::sim {

size_t SetHistory::IndexOf(uint64_t generation) const {
  const auto found = std::find_if(generations_.begin(), generations_.end(),
                                  [&](const Generation& g) { return g.number == generation; });
  return static_cast<size_t>(found - generations_.begin());
}

const SetHistory::State* SetHistory::StateAt(uint64_t generation, uint64_t clock) const {
  const size_t index = IndexOf(generation);
  if (index == generations_.size() || clock >= generations_[index].states.size()) return nullptr;
  return &generations_[index].states[clock];
}

void SetHistory::Begin(const Shape& shape, uint64_t generation, uint64_t clock) {
  if (IndexOf(generation) < generations_.size()) return;
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
  if (StateAt(generation, clock) == nullptr) return false;
  std::vector<State>& states = generations_[IndexOf(generation)].states;
  std::optional<uint64_t>& set = states[clock].set;
  if (set) return *set == ranks;
  set = ranks;
  uint64_t read = 0;
  State next = states[clock];
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
  states.push_back(next);
  return true;
}

std::optional<uint64_t> SetHistory::SetOf(uint64_t generation, uint64_t clock) const {
  const State* const state = StateAt(generation, clock);
  return state == nullptr ? std::nullopt : state->set;
}

bool SetHistory::Is(uint64_t generation, uint32_t block, const Version& version) const {
  const State* const state = StateAt(generation, version.number);
  return state != nullptr && state->blocks[block] == version;
}

}  // namespace leeway::sim
