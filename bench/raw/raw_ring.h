// Measures the raw limit of shared memory. Two processes, each on a core of its own, pass each
// other slots of one memfd, and spin while they wait. The sender copies values into a slot. The
// receiver adds them from the slot to the parameters, or copies them into the weights.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "bench/base/bench_process.h"
#include "bench/base/transfer.h"

namespace leeway {

// One ring for each direction, in memory that forked processes share.
class RawRings {
 public:
  static absl::StatusOr<std::shared_ptr<RawRings>> Make(const TransferPlan& plan);
  ~RawRings();
  RawRings(const RawRings&) = delete;
  RawRings& operator=(const RawRings&) = delete;

  // A ring with one writer and one reader.
  struct Ring {
    static constexpr uint64_t kSlots = 4;
    alignas(64) std::atomic<uint64_t> written{0};
    alignas(64) std::atomic<uint64_t> read{0};
    bool full() const {
      return written.load(std::memory_order_relaxed) - read.load(std::memory_order_acquire) ==
             kSlots;
    }
    bool empty() const {
      return written.load(std::memory_order_acquire) == read.load(std::memory_order_relaxed);
    }
  };
  struct Head {
    Ring up;
    Ring down;
    // The number of messages after which the round is over. The client sets it.
    alignas(64) std::atomic<uint64_t> last{~uint64_t{0}};
  };
  Head& head() { return *head_; }
  std::span<float> UpSlot(uint64_t message) { return Slot(message % Ring::kSlots); }
  std::span<float> DownSlot(uint64_t message) {
    return Slot(Ring::kSlots + message % Ring::kSlots);
  }
  // Returns the number of floats in a piece. Large messages are passed in pieces, so that a piece
  // stays in the cache.
  uint64_t piece_floats() const { return piece_floats_; }

 private:
  RawRings() = default;
  std::span<float> Slot(uint64_t slot) { return {slots_ + slot * piece_floats_, piece_floats_}; }

  void* memory_ = nullptr;
  uint64_t bytes_ = 0;
  Head* head_ = nullptr;
  float* slots_ = nullptr;
  uint64_t piece_floats_ = 0;
};

// Make the same services as RawTransferServer and RawTransferClient.
BenchService RawRingServer(std::shared_ptr<RawRings> rings, const TransferPlan& plan);
BenchService RawRingClient(std::shared_ptr<RawRings> rings, const TransferPlan& plan);

}  // namespace leeway
