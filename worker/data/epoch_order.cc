#include "worker/data/epoch_order.h"

#include <utility>

#include "common/philox.h"

namespace leeway {

EpochOrder::EpochOrder(uint64_t seed, std::optional<uint32_t> rank, Rows rows)
    : seed_(seed), rank_(rank), rows_(std::move(rows)) {}

std::shared_ptr<const EpochOrder::Rows> EpochOrder::Of(uint64_t epoch) const {
  {
    MutexLock lock(mutex_);
    if (last_ != nullptr && epoch_ == epoch) return last_;
  }
  auto order = std::make_shared<const Rows>(Shuffled(epoch));
  MutexLock lock(mutex_);
  epoch_ = epoch;
  last_ = order;
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
