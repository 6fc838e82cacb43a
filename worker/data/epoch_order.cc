#include "worker/data/epoch_order.h"

#include <utility>

#include "common/philox.h"

namespace leeway {

EpochOrder::EpochOrder(uint64_t seed, std::optional<uint32_t> rank, Rows rows)
    : seed_(seed), rank_(rank), rows_(std::move(rows)) {}

std::shared_ptr<const EpochOrder::Rows> EpochOrder::Of(uint64_t epoch) const {
  {
    MutexLock lock(mutex_);
    for (const Kept& kept : kept_) {
      if (kept.order != nullptr && kept.epoch == epoch) return kept.order;
    }
  }
  auto order = std::make_shared<const Rows>(Shuffled(epoch));
  MutexLock lock(mutex_);
  kept_[1] = std::exchange(kept_[0], {epoch, order});
  return order;
}

EpochOrder::Rows EpochOrder::Shuffled(uint64_t epoch) const {
  Rows order = rows_;
  RandomStream draws = rank_.has_value()
                           ? RandomStream(seed_, RandomPurpose::kShuffle, {epoch, *rank_})
                           : RandomStream(seed_, RandomPurpose::kShuffle, {epoch});
  draws.Shuffle(order);
  return order;
}

}  // namespace leeway
