#include "server/service/byte_budget.h"

#include <utility>

namespace leeway {
namespace {

// The shortest time between two log lines about refusals, because logging an overload must not add
// to it.
constexpr uint64_t kTellEverySeconds = 10;

}  // namespace

struct ByteBudget::Held {
  Held(std::shared_ptr<Counts> counted, uint64_t size, std::shared_ptr<const void> kept)
      : counts(std::move(counted)), bytes(size), owner(std::move(kept)) {}
  ~Held() { counts->held.fetch_sub(bytes, std::memory_order_relaxed); }

  const std::shared_ptr<Counts> counts;
  const uint64_t bytes;
  const std::shared_ptr<const void> owner;
};

std::shared_ptr<const void> ByteBudget::Hold(uint64_t bytes, std::shared_ptr<const void> owner) {
  const uint64_t held = counts_->held.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  uint64_t most = counts_->most.load(std::memory_order_relaxed);
  while (held > most && !counts_->most.compare_exchange_weak(most, held)) {
  }
  return std::make_shared<const Held>(counts_, bytes, std::move(owner));
}

bool ByteBudget::CountRefused(uint64_t tick) {
  const bool first = refused_.fetch_add(1, std::memory_order_relaxed) == 0;
  uint64_t told = told_.load(std::memory_order_relaxed);
  if (!first && tick < told + kTellEverySeconds) return false;
  return told_.compare_exchange_strong(told, tick);
}

ByteBudget::Load ByteBudget::load() const {
  return {held(), counts_->most.load(std::memory_order_relaxed),
          refused_.load(std::memory_order_relaxed),
          refused_unread_.load(std::memory_order_relaxed)};
}

}  // namespace leeway
