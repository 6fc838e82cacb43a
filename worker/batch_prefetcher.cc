#include "worker/batch_prefetcher.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "common/status.h"
#include "worker/device/placement.h"

namespace leeway {

BatchPrefetcher::BatchPrefetcher(uint32_t threads, Load load) : load_(std::move(load)) {
  for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

BatchPrefetcher::~BatchPrefetcher() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

BatchPrefetcher::Slot* BatchPrefetcher::Find(uint64_t key) {
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [key](const Slot& slot) { return slot.key == key; });
  return found == slots_.end() ? nullptr : &*found;
}

BatchPrefetcher::Slot* BatchPrefetcher::Next() {
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [](const Slot& slot) { return slot.state == State::kWanted; });
  return found == slots_.end() ? nullptr : &*found;
}

void BatchPrefetcher::Remove(uint64_t key) {
  std::erase_if(slots_, [key](const Slot& slot) { return slot.key == key; });
}

Batch BatchPrefetcher::Spare() {
  if (spare_.empty()) return {};
  Batch batch = std::move(spare_.back());
  spare_.pop_back();
  return batch;
}

absl::Status BatchPrefetcher::LoadOrSay(uint64_t key, Batch& batch) const {
  try {
    return load_(key, batch);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "loading a batch: out of memory; lower data.prefetch or data.batch_size");
  }
}

void BatchPrefetcher::Want(std::span<const uint64_t> keys) {
  MutexLock lock(mutex_);
  std::vector<Slot> wanted;
  bool more = false;
  for (const uint64_t key : keys) {
    Slot* const known = Find(key);
    more = more || known == nullptr;
    if (known == nullptr) {
      wanted.emplace_back().key = key;
    } else {
      wanted.push_back(std::move(*known));
    }
  }
  for (Slot& slot : slots_) {
    const bool kept = std::find(keys.begin(), keys.end(), slot.key) != keys.end();
    if (!kept && slot.state == State::kReady) spare_.push_back(std::move(slot.batch));
  }
  slots_ = std::move(wanted);
  if (more) changed_.NotifyAll();
}

absl::Status BatchPrefetcher::Take(uint64_t key, Duration limit, Batch& batch) {
  const Time end = std::chrono::steady_clock::now() + limit;
  {
    MutexLock lock(mutex_);
    Slot* slot = Find(key);
    while (slot != nullptr && slot->state == State::kLoading) {
      if (!changed_.WaitUntil(mutex_, end)) {
        return absl::DeadlineExceededError(absl::StrCat(
            "a batch was not loaded within ", Seconds(limit),
            " s (limits.exchange_seconds): check that the disk or the object store of the data "
            "answers"));
      }
      slot = Find(key);
    }
    if (slot != nullptr && slot->state == State::kReady) {
      std::swap(batch, slot->batch);
      const absl::Status status = slot->status;
      spare_.push_back(std::move(slot->batch));
      Remove(key);
      return status;
    }
    Remove(key);
  }
  return LoadOrSay(key, batch);
}

void BatchPrefetcher::Run() {
  // These threads need not stay on the processors of the computing threads.
  LetGo();
  while (true) {
    uint64_t key;
    Batch batch;
    {
      MutexLock lock(mutex_);
      Slot* slot = Next();
      while (slot == nullptr && !ending_) {
        changed_.Wait(mutex_);
        slot = Next();
      }
      if (ending_) return;
      slot->state = State::kLoading;
      key = slot->key;
      batch = Spare();
    }
    const absl::Status status = LoadOrSay(key, batch);
    MutexLock lock(mutex_);
    Slot* const slot = Find(key);
    // Another call may have dropped this batch in the meantime. It may also have requested the
    // batch again.
    if (slot == nullptr || slot->state == State::kReady) {
      spare_.push_back(std::move(batch));
      continue;
    }
    slot->batch = std::move(batch);
    slot->status = status;
    slot->state = State::kReady;
    changed_.NotifyAll();
  }
}

}  // namespace leeway
