// The events of a simulated world: the earliest first, and among equals the one that was pushed
// first. It can be copied, so that the exhaustive mode can branch.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "tests/sim/message.h"

namespace leeway::sim {

class EventQueue {
 public:
  EventQueue() {
    heap_.reserve(64);
    free_.reserve(64);
  }

  // `at` is below kEnd.
  void Push(Micros at, const Message& message);
  // Adds an event that has no time. Such events keep the order in which they were appended.
  void Append(const Message& message);
  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  // More events were pushed in all, or waited at once, than there are numbers for. The order is
  // then meaningless.
  bool overflown() const { return sequence_ > kSequenceMax || slots_ > kSlotsMax; }

  // The next event's time and slot. Its message stays in the slot until the caller gives the slot
  // back.
  struct Next {
    Micros at = 0;
    uint32_t slot = 0;
  };
  Next Pop();
  const Message& At(uint32_t slot) const { return slab_[slot / kChunk][slot % kChunk]; }
  void GiveBack(uint32_t slot) { free_.push_back(slot); }

  // The event that was appended at this index.
  const Message& operator[](size_t index) const { return At(SlotOf(heap_[index])); }
  Message Take(size_t index);

 private:
  static constexpr uint32_t kChunk = 32;
  // The time, then the order of pushing, then the message's slot, in one number, so that an entry
  // is moved and compared in one operation.
  using Entry = uint64_t;
  static constexpr uint32_t kSlotBits = 12;
  static constexpr uint32_t kSequenceBits = 24;
  static constexpr uint32_t kSlotsMax = 1u << kSlotBits;
  static constexpr uint32_t kSequenceMax = 1u << kSequenceBits;
  static constexpr Micros kEnd = Micros{1} << (64 - kSlotBits - kSequenceBits);
  Entry Make(Micros at, uint32_t slot) {
    const auto time = static_cast<uint64_t>(std::min(at, kEnd - 1));
    return (time << kSequenceBits | sequence_++) << kSlotBits | slot;
  }
  static uint32_t SlotOf(Entry entry) { return entry % kSlotsMax; }

  uint32_t Keep(const Message& message);

  // A binary heap, and the memory of the messages, which do not move.
  std::vector<Entry> heap_;
  std::deque<std::array<Message, kChunk>> slab_;
  std::vector<uint32_t> free_;
  uint32_t slots_ = 0;
  uint32_t sequence_ = 0;
};

inline uint32_t EventQueue::Keep(const Message& message) {
  uint32_t slot = slots_;
  if (free_.empty()) {
    if (slots_++ % kChunk == 0) slab_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  slab_[slot / kChunk][slot % kChunk] = message;
  return slot;
}

inline void EventQueue::Append(const Message& message) { heap_.push_back(Make(0, Keep(message))); }

inline void EventQueue::Push(Micros at, const Message& message) {
  const Entry entry = Make(at, Keep(message));
  size_t hole = heap_.size();
  heap_.push_back(entry);
  for (; hole > 0 && entry < heap_[(hole - 1) / 2]; hole = (hole - 1) / 2) {
    heap_[hole] = heap_[(hole - 1) / 2];
  }
  heap_[hole] = entry;
}

// Half of the choices between two children go either way, so the child is chosen without a branch.
// The last entry then rises from the bottom, where it mostly belongs.
inline EventQueue::Next EventQueue::Pop() {
  const Entry next = heap_.front();
  const Entry last = heap_.back();
  heap_.pop_back();
  const size_t size = heap_.size();
  Entry* const heap = heap_.data();
  size_t hole = 0;
  for (size_t child = 1; child + 1 < size; child = 2 * hole + 1) {
    child += static_cast<size_t>(heap[child + 1] < heap[child]);
    heap[hole] = heap[child];
    hole = child;
  }
  if (2 * hole + 1 < size) {
    heap[hole] = heap[2 * hole + 1];
    hole = 2 * hole + 1;
  }
  for (; hole > 0 && last < heap[(hole - 1) / 2]; hole = (hole - 1) / 2) {
    heap[hole] = heap[(hole - 1) / 2];
  }
  if (size > 0) heap[hole] = last;
  return {static_cast<Micros>(next >> (kSlotBits + kSequenceBits)), SlotOf(next)};
}

inline Message EventQueue::Take(size_t index) {
  const uint32_t slot = SlotOf(heap_[index]);
  heap_.erase(heap_.begin() + static_cast<std::ptrdiff_t>(index));
  free_.push_back(slot);
  return At(slot);
}

}  // namespace leeway::sim
