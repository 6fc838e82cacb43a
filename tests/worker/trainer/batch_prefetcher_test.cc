#include "worker/batch_prefetcher.h"

#include <atomic>
#include <chrono>
#include <map>
#include <new>
#include <vector>

#include "tests/catch.h"

namespace leeway::batch_prefetcher {
namespace {

using Keys = std::vector<uint64_t>;
constexpr Duration kPatience = std::chrono::seconds(60);

// The batch that belongs to a key contains the key.
absl::Status LoadNumber(uint64_t key, Batch& batch) {
  batch.size = 1;
  batch.features.assign(1, static_cast<float>(key));
  batch.labels.assign(1, 0);
  return absl::OkStatus();
}

// Makes threads wait until the test opens it.
class Gate {
 public:
  void Pass() {
    MutexLock lock(mutex_);
    ++arrived_;
    changed_.NotifyAll();
    while (!open_) changed_.Wait(mutex_);
  }
  void Await(int count) {
    MutexLock lock(mutex_);
    while (arrived_ < count) changed_.Wait(mutex_);
  }
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int arrived_ GUARDED_BY(mutex_) = 0;
  bool open_ GUARDED_BY(mutex_) = false;
};

TEST_CASE("Every batch is that of its key, with any number of threads") {
  for (const uint32_t threads : {1, 2, 5}) {
    BatchPrefetcher prefetcher(threads, LoadNumber);
    Batch batch;
    for (uint64_t key = 0; key < 500; ++key) {
      prefetcher.Want(Keys{key, key + 1, key + 2, key + 3});
      REQUIRE(prefetcher.Take(key, kPatience, batch).ok());
      REQUIRE(batch.features == std::vector<float>{static_cast<float>(key)});
    }
    // Backwards, and to a key that was never wanted.
    for (const uint64_t key : {7u, 400u, 3u}) {
      REQUIRE(prefetcher.Take(key, kPatience, batch).ok());
      CHECK(batch.features[0] == static_cast<float>(key));
    }
  }
}

TEST_CASE("What is wanted is loaded before it is taken, and once") {
  Mutex mutex;
  CondVar changed;
  std::map<uint64_t, int> loads;
  BatchPrefetcher prefetcher(1, [&](uint64_t key, Batch& batch) {
    MutexLock lock(mutex);
    ++loads[key];
    changed.NotifyAll();
    return LoadNumber(key, batch);
  });
  prefetcher.Want(Keys{3, 4});
  {
    MutexLock lock(mutex);
    while (loads.size() < 2) changed.Wait(mutex);
  }
  Batch batch;
  REQUIRE(prefetcher.Take(3, kPatience, batch).ok());
  REQUIRE(prefetcher.Take(4, kPatience, batch).ok());
  CHECK(batch.features[0] == 4);
  MutexLock lock(mutex);
  CHECK(loads == std::map<uint64_t, int>{{3, 1}, {4, 1}});
}

TEST_CASE("A worker loads what no thread has begun itself, and waits for what one has") {
  Gate gate;
  std::atomic<int> loaded = 0;
  BatchPrefetcher prefetcher(1, [&](uint64_t key, Batch& batch) {
    ++loaded;
    if (key == 1) gate.Pass();
    return LoadNumber(key, batch);
  });
  prefetcher.Want(Keys{1, 2});
  gate.Await(1);
  Batch batch;
  // The only thread is busy with the first key.
  REQUIRE(prefetcher.Take(2, kPatience, batch).ok());
  CHECK(batch.features[0] == 2);
  const absl::Status late = prefetcher.Take(1, std::chrono::milliseconds(1), batch);
  CHECK(late.code() == absl::StatusCode::kDeadlineExceeded);
  gate.Open();
  REQUIRE(prefetcher.Take(1, kPatience, batch).ok());
  CHECK(batch.features[0] == 1);
  CHECK(loaded == 2);
}

TEST_CASE("What is no longer wanted is forgotten, also while it is loaded") {
  Gate gate;
  BatchPrefetcher prefetcher(1, [&](uint64_t key, Batch& batch) {
    if (key == 1) gate.Pass();
    return LoadNumber(key, batch);
  });
  prefetcher.Want(Keys{1});
  gate.Await(1);
  prefetcher.Want(Keys{8, 9});
  gate.Open();
  Batch batch;
  for (const uint64_t key : {8u, 9u, 1u}) {
    REQUIRE(prefetcher.Take(key, kPatience, batch).ok());
    CHECK(batch.features[0] == static_cast<float>(key));
  }
}

TEST_CASE("Errors of a thread, and that it has no memory, are those of the batch") {
  BatchPrefetcher prefetcher(2, [](uint64_t key, Batch& batch) -> absl::Status {
    if (key == 1) return absl::InvalidArgumentError("cat/1.jpg: damaged");
    if (key == 2) throw std::bad_alloc();
    return LoadNumber(key, batch);
  });
  prefetcher.Want(Keys{1, 2, 3});
  Batch batch;
  CHECK(prefetcher.Take(1, kPatience, batch) == absl::InvalidArgumentError("cat/1.jpg: damaged"));
  CHECK(prefetcher.Take(2, kPatience, batch).code() == absl::StatusCode::kResourceExhausted);
  CHECK(prefetcher.Take(3, kPatience, batch).ok());
}

}  // namespace
}  // namespace leeway::batch_prefetcher
