// Which batches are whose, and that none is left out whatever becomes of the workers.
#include "server/coordinator/lease_book.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "common/philox.h"
#include "tests/catch.h"

namespace leeway {
namespace {

using Runs = std::vector<Interval>;

LeaseBook Book(uint64_t batches = LeaseBook::kEndless) {
  return LeaseBook({.batches_per_epoch = 10, .batches = batches, .workers = 2});
}

TEST_CASE("leases: batches go out in order, as many as a worker wants to hold") {
  LeaseBook book = Book();
  book.Lease(0, 4);
  book.Lease(1, 2);
  book.Lease(0, 4);
  CHECK(book.Held(0) == Runs{{0, 4}});
  CHECK(book.Held(1) == Runs{{4, 6}});
  book.Done(0, {0, 2}, 0);
  book.Lease(0, 4);
  CHECK(book.Held(0) == Runs{{2, 4}, {6, 8}});
  CHECK(book.done() == 2);
  CHECK(book.leased() == 6);
}

TEST_CASE("leases: what a lost worker has not done is handed out before anything else") {
  LeaseBook book = Book();
  book.Lease(0, 4);
  book.Lease(1, 4);
  book.Done(0, {0, 1}, 0);
  book.TakeBack(0);
  CHECK(book.taken_back() == 3);
  book.Lease(1, 8);
  CHECK(book.Held(1) == Runs{{1, 9}});
  CHECK(book.Held(0).empty());
}

TEST_CASE("leases: a late report counts if nobody else has the batch, and is ignored otherwise") {
  LeaseBook book = Book();
  book.Lease(0, 4);
  book.TakeBack(0);
  book.Lease(1, 2);
  book.Done(0, {0, 4}, 3);
  CHECK(book.done() == 2);
  CHECK(book.Held(1) == Runs{{0, 2}});
  book.Done(1, {0, 2}, 1);
  book.Done(1, {0, 2}, 1);
  book.Done(1, {100, 200}, 1);
  CHECK(book.done() == 4);
  CHECK(book.leased() == 0);
}

TEST_CASE("leases: an epoch is whole when its last batch is done, and so is the job") {
  LeaseBook book = Book(20);
  std::map<uint32_t, uint64_t> clock;
  uint64_t given = 0;
  while (!book.over()) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      book.Lease(rank, 100);
      // Towards the end a worker holds a share of what is left, and at least one.
      uint64_t held = 0;
      for (const Interval& run : book.Held(rank)) held += run.size();
      CHECK(held <= std::max<uint64_t>(1, (20 - given) / 4 + held));
      for (const Interval& run : book.Held(rank)) {
        CHECK(run.end <= 20);
        given += run.size();
        book.Done(rank, run, clock[rank]++);
      }
    }
  }
  CHECK(given == 20);
  CHECK(book.whole_epochs() == 2);
  CHECK(book.done() == 20);
}

TEST_CASE("leases: towards the end a worker gets a share of what is left") {
  LeaseBook book = Book(40);
  book.Lease(0, 100);
  CHECK(book.Held(0) == Runs{{0, 10}});
  book.Lease(1, 100);
  CHECK(book.Held(1) == Runs{{10, 17}});
}

TEST_CASE("leases: a cut has what was contributed before it, and the rest is handed out again") {
  LeaseBook book = Book();
  book.Lease(0, 4);
  book.Lease(1, 4);
  book.Done(0, {0, 1}, 0);
  book.Done(0, {1, 2}, 1);
  book.Done(1, {4, 5}, 0);
  const v1::DataProgress cut = book.At({1, 1});
  CHECK(cut.next() == 8);
  book.Forget({1, 1});
  book.Done(0, {2, 4}, 2);
  LeaseBook again = Book();
  again.Restore(cut);
  again.Lease(0, 7);
  // Without batches 0 and 4.
  CHECK(again.Held(0) == Runs{{1, 4}, {5, 9}});
  // The next cut still has what the older one had.
  CHECK(book.At({3, 1}).open_size() == 1);
  CHECK(book.At({3, 1}).open(0).first() == 5);
}

// Workers come, do, go, and the job is now and then taken back to a cut. What of their work the cut
// has is known here; in the end every batch must have counted.
TEST_CASE("leases: in any order of deaths and rewinds every batch of the job counts in the end") {
  constexpr uint64_t kBatches = 60;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    INFO(seed);
    RandomStream draws(seed, RandomPurpose::kEmulate, {6});
    LeaseBook book({.batches_per_epoch = 10, .batches = kBatches, .workers = 3});
    std::vector<uint64_t> clocks(3);
    std::multiset<uint64_t> counted, in_cut;
    std::vector<uint64_t> cut_clocks(3);
    v1::DataProgress cut;
    for (int step = 0; step < 5000 && !book.over(); ++step) {
      const auto rank = static_cast<uint32_t>(draws.Below(3));
      const uint64_t dice = draws.Below(100);
      if (dice < 45) {
        book.Lease(rank, 1 + draws.Below(6));
      } else if (dice < 90) {
        const Runs held = book.Held(rank);
        if (held.empty()) continue;
        const Interval run{held[0].first, held[0].first + 1};
        counted.insert(run.first);
        // One that dies before it reports.
        if (draws.Below(10) == 0) {
          ++clocks[rank];
          book.TakeBack(rank);
        } else {
          book.Done(rank, run, clocks[rank]++);
        }
      } else if (dice < 94) {
        book.TakeBack(rank);
      } else if (dice < 98) {
        cut = book.At(clocks);
        in_cut = counted;
        book.Forget(clocks);
      } else {
        book.Restore(cut);
        counted = in_cut;
      }
    }
    REQUIRE(book.over());
    for (uint64_t batch = 0; batch < kBatches; ++batch) CHECK(counted.count(batch) >= 1);
  }
}

}  // namespace
}  // namespace leeway
