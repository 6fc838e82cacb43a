// Counts the memory that a server holds for received messages, and knows the bound on it
// (limits.held_bytes).
//
// A message counts with its whole size, from its arrival until the last reference to any part of it
// is gone. So a contribution of 4 KiB in a frame of 256 KiB counts as 256 KiB. Values in a worker's
// own memory and versions of the model do not count.
//
// The budget itself refuses nothing. The code that admits requests calls over(), and decides which
// requests it admits even beyond the bound (server/shard/admission.h).
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
    // The highest value of held_bytes so far.
    uint64_t held_bytes_max = 0;
    uint64_t refused_contributions = 0;
    // The number of answers that the server did not send, or took back, because their worker does
    // not read (limits.unread_bytes).
    uint64_t refused_unread = 0;
  };

  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
  explicit ByteBudget(uint64_t limit_bytes = kUnlimited)
      : counts_(std::make_shared<Counts>()), limit_(limit_bytes) {}

  // Sets the bound. Until this call the budget is unlimited.
  void SetLimit(uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }

  // Counts `bytes` until the last reference to the returned pointer is gone. That pointer keeps
  // `owner` alive and may outlive the budget.
  std::shared_ptr<const void> Hold(uint64_t bytes, std::shared_ptr<const void> owner);

  uint64_t held() const { return counts_->held.load(std::memory_order_relaxed); }
  bool over() const { return held() > limit(); }

  // Counts a refusal. Returns true if it is the first one in a while, which the caller should log.
  // `tick` counts seconds.
  bool CountRefused(uint64_t tick);
  void CountUnread(uint64_t answers) {
    refused_unread_.fetch_add(answers, std::memory_order_relaxed);
  }
  Load load() const;

 private:
  // The counts of held bytes. They live as long as the budget and all pointers from Hold.
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
