// Loops whose elements are shared among threads: each element is computed once, whether the threads
// poll or sleep.
#include "worker/compute/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/brief_waits.h"
#include "tests/catch.h"

namespace leeway::thread_pool {
namespace {

// Each element holds the part that has computed it; kNobody: no part has.
constexpr uint32_t kNobody = 99;

std::vector<uint32_t> DoneBy(ThreadPool& pool, size_t count, size_t grain) {
  std::vector<uint32_t> by(count, kNobody);
  pool.For(count, grain, [&](size_t begin, size_t end, uint32_t part) {
    for (size_t i = begin; i < end; ++i) by[i] = by[i] == kNobody ? part : kNobody + 1;
  });
  return by;
}

// Waits longer than any thread polls.
void LetThemSleep() {
  const Time until = std::chrono::steady_clock::now() + 4 * BriefWaits::kShort;
  while (std::chrono::steady_clock::now() < until) {
  }
}

TEST_CASE("each element is done once, by parts in order") {
  for (const uint32_t threads : {1u, 2u, 3u, 8u}) {
    ThreadPool pool(threads);
    for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{64}, size_t{1001}}) {
      for (const size_t grain : {size_t{1}, size_t{5}, size_t{2000}}) {
        CAPTURE(threads, count, grain);
        const std::vector<uint32_t> by = DoneBy(pool, count, grain);
        const uint32_t parts = pool.Parts(count, grain);
        CHECK(parts <= threads);
        CHECK(std::is_sorted(by.begin(), by.end()));
        if (count > 0) CHECK(by.back() == parts - 1);
      }
    }
  }
}

TEST_CASE("short loops follow each other, with threads that poll and threads that sleep") {
  ThreadPool pool(3);
  std::vector<uint64_t> sums(3000);
  for (uint64_t loop = 0; loop < 600; ++loop) {
    if (loop % 100 == 50) LetThemSleep();
    pool.For(sums.size(), 1, [&](size_t begin, size_t end, uint32_t) {
      for (size_t i = begin; i < end; ++i) sums[i] += loop;
    });
    // The other threads' results are visible when the loop is over.
    REQUIRE(std::ranges::all_of(sums, [&](uint64_t sum) { return sum == loop * (loop + 1) / 2; }));
  }
}

TEST_CASE("a pool that is not used, or was a moment ago, ends") {
  for (int i = 0; i < 20; ++i) {
    ThreadPool unused(4);
    ThreadPool used(4);
    CHECK(DoneBy(used, 100, 1).back() == 3);
  }
}

}  // namespace
}  // namespace leeway::thread_pool
