// A carrier that goes through memory: workers of one process meet at a table, without servers. It
// shows how little a carrier needs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "exchange/carriers/carrier.h"

namespace leeway::testing {

// What the workers share: the weights, and the contributions of the clocks that are not complete.
struct MemoryTable {
  MemoryTable(BlockLayout with_layout, uint32_t with_workers, std::vector<float> start)
      : layout(std::move(with_layout)), workers(with_workers), weights(std::move(start)) {}

  // Adds a contribution. The last one of a block and clock moves the block's weights by their mean.
  void Add(uint64_t clock, uint32_t block, std::span<const float> contribution) {
    auto& sum = sums[{clock, block}];
    const ElementRange range = layout.Range(block);
    sum.values.resize(range.count);
    for (uint64_t i = 0; i < range.count; ++i) {
      sum.values[i] += contribution[range.offset + i] / static_cast<float>(workers);
    }
    if (++sum.count < workers) return;
    for (uint64_t i = 0; i < range.count; ++i) weights[range.offset + i] -= sum.values[i];
  }
  bool Complete(uint64_t clock, uint32_t block) const {
    const auto sum = sums.find({clock, block});
    return sum != sums.end() && sum->second.count == workers;
  }

  struct Sum {
    uint32_t count = 0;
    std::vector<float> values;
  };
  const BlockLayout layout;
  const uint32_t workers;
  std::vector<float> weights;
  std::map<std::pair<uint64_t, uint32_t>, Sum> sums;
};

// All workers are on one thread, so a wait that cannot end yet returns at once.
class MemoryCarrier : public Carrier {
 public:
  explicit MemoryCarrier(MemoryTable& table) : table_(table) {}

  const BlockLayout& layout() const override { return table_.layout; }
  FloatBuffer MakeVector() override { return FloatBuffer(table_.weights.size()); }

  absl::StatusOr<std::optional<uint64_t>> Read(uint64_t clock, std::span<float> weights,
                                               Time) override {
    std::copy(table_.weights.begin(), table_.weights.end(), weights.begin());
    return clock;
  }
  absl::Status ReadLatest(std::span<float> weights) override {
    return Read(0, weights, Time::max()).status();
  }

  void Begin(uint64_t clock) override {
    under_way_ = true;
    report_ = {.clock = clock, .version = clock + 1};
  }
  void Contribute(BlockRange blocks, uint64_t, const ContributionRates&,
                  std::span<float> contribution, std::span<float> weights) override {
    for (uint32_t block = blocks.first; block < blocks.first + blocks.count; ++block) {
      table_.Add(clock(), block, contribution);
      open_.push_back({block, weights});
    }
  }
  absl::Status Finish() override { return absl::OkStatus(); }
  absl::StatusOr<bool> Await(std::span<const ElementRange>, Time deadline) override {
    return AwaitAll(deadline);
  }
  absl::StatusOr<bool> AwaitAll(Time) override {
    std::erase_if(open_, [&](const auto& part) {
      const auto& [block, weights] = part;
      if (!table_.Complete(clock(), block)) return false;
      const ElementRange range = table_.layout.Range(block);
      std::copy_n(table_.weights.begin() + static_cast<std::ptrdiff_t>(range.offset), range.count,
                  weights.begin() + static_cast<std::ptrdiff_t>(range.offset));
      return true;
    });
    return open_.empty();
  }
  bool Abandon() override {
    open_.clear();
    under_way_ = false;
    return true;
  }
  ExchangeReport End() override {
    under_way_ = false;
    return report_;
  }
  bool under_way() const override { return under_way_; }
  uint64_t clock() const override { return report_.clock; }

 private:
  MemoryTable& table_;
  bool under_way_ = false;
  ExchangeReport report_;
  std::vector<std::pair<uint32_t, std::span<float>>> open_;
};

}  // namespace leeway::testing
