// A set of whole numbers, stored as runs of consecutive numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

namespace leeway {

// The numbers from `first` to `end` - 1.
struct Interval {
  uint64_t first = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - first; }
  bool operator==(const Interval&) const = default;
};

// Not thread-safe. The cost of an operation grows with the logarithm of the number of runs in the
// set, and with the number of runs that the operation touches. Empty and reversed intervals are
// ignored.
class IntervalSet {
 public:
  void Add(Interval added) {
    if (added.end <= added.first) return;
    Remove(added);
    size_ += added.size();
    const auto next = runs_.lower_bound(added.first);
    if (next != runs_.end() && next->first == added.end) {
      added.end = next->second;
      runs_.erase(next);
    }
    const auto before = runs_.lower_bound(added.first);
    if (before != runs_.begin() && std::prev(before)->second == added.first) {
      std::prev(before)->second = added.end;
    } else {
      runs_.emplace(added.first, added.end);
    }
  }

  // Returns the parts of the interval that were in the set, in ascending order.
  std::vector<Interval> Remove(Interval removed) {
    std::vector<Interval> parts;
    if (removed.end <= removed.first) return parts;
    auto run = runs_.upper_bound(removed.first);
    if (run != runs_.begin() && std::prev(run)->second > removed.first) --run;
    while (run != runs_.end() && run->first < removed.end) {
      const Interval whole{run->first, run->second};
      run = runs_.erase(run);
      const Interval part{std::max(whole.first, removed.first), std::min(whole.end, removed.end)};
      if (whole.first < part.first) runs_.emplace(whole.first, part.first);
      if (part.end < whole.end) runs_.emplace(part.end, whole.end);
      size_ -= part.size();
      parts.push_back(part);
    }
    return parts;
  }

  // Removes and returns the first numbers of the lowest run, at most `most` of them. `most` is
  // above 0. Returns nothing if the set is empty.
  std::optional<Interval> TakeFirst(uint64_t most) {
    if (runs_.empty()) return std::nullopt;
    const auto [first, end] = *runs_.begin();
    const Interval taken{first, first + std::min(most, end - first)};
    Remove(taken);
    return taken;
  }

  uint64_t size() const { return size_; }
  bool empty() const { return runs_.empty(); }
  // Returns the lowest number of the set, which must not be empty.
  uint64_t lowest() const { return runs_.begin()->first; }
  std::vector<Interval> runs() const {
    std::vector<Interval> all;
    for (const auto& [first, end] : runs_) all.push_back({first, end});
    return all;
  }

 private:
  // Maps the first number of each run to the end of the run. There is a gap between any two runs.
  std::map<uint64_t, uint64_t> runs_;
  uint64_t size_ = 0;
};

}  // namespace leeway
