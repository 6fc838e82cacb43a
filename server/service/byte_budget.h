// What a server holds of the messages that it has received, against a bound (limits.held_bytes).
//
// What counts is a message as it came, from its arrival until nobody refers to any part of it any
// more: a contribution of 4 KiB in a frame of 256 KiB keeps the frame. Values in a worker's own
// memory, and the versions of the model, cost nothing here.
//
// Being over the bound refuses nothing by itself: who lets requests in asks, and knows which must
// come in all the same (server/shard/admission.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>

namespace leeway {

// Thread-safe, without locks.
class ByteBudget {
 public:
  struct Load {
    uint64_t held_bytes = 0;
    // The most there ever was.
    uint64_t held_bytes_max = 0;
    uint64_t refused_contributions = 0;
    // Answers that were not sent, or were taken back, because their worker does not read
    // (limits.unread_bytes).
    uint64_t refused_unread = 0;
  };

  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
  explicit ByteBudget(uint64_t limit_bytes = kUnlimited)
      : counts_(std::make_shared<Counts>()), limit_(limit_bytes) {}

  // Before it is known: unlimited.
  void SetLimit(uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }

  // `owner`, whose memory counts as `bytes` from now on until the last reference to what is
  // returned is gone. May outlive the budget.
  std::shared_ptr<const void> Hold(uint64_t bytes, std::shared_ptr<const void> owner);

  uint64_t held() const { return counts_->held.load(std::memory_order_relaxed); }
  bool over() const { return held() > limit(); }

  // True: the first for a while, which is worth a line in the log. `tick` counts seconds.
  bool CountRefused(uint64_t tick);
  void CountUnread(uint64_t answers) {
    refused_unread_.fetch_add(answers, std::memory_order_relaxed);
  }
  Load load() const;

 private:
  // Of everything held, which may be let go of after the budget is gone.
  struct Counts {
    std::atomic<uint64_t> held{0};
    std::atomic<uint64_t> most{0};
  };
  struct Held;

  const std::shared_ptr<Counts> counts_;
  std::atomic<uint64_t> limit_;
  std::atomic<uint64_t> refused_{0};
  std::atomic<uint64_t> refused_unread_{0};
  std::atomic<uint64_t> told_{0};
};

}  // namespace leeway
