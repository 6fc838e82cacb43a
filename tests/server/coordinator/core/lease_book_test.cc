// Which batches belong to which worker, and that every batch is done whatever happens to the
// workers.
#include "server/coordinator/core/lease_book.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/philox.h"
#include "tests/catch.h"

namespace leeway::lease_book {
namespace {

using Runs = std::vector<Interval>;

LeaseBook Book(uint64_t batches = LeaseBook::kEndless) {
  return LeaseBook({.batches_per_epoch = 10, .batches = batches});
}

TEST_CASE("leases: batches go out in order, as many as a worker wants to hold") {
  LeaseBook book = Book();
  book.Lease(0, 4, 2);
  book.Lease(1, 2, 2);
  book.Lease(0, 4, 2);
  CHECK(book.Held(0) == Runs{{0, 4}});
  CHECK(book.Held(1) == Runs{{4, 6}});
  book.Done(0, {0, 2}, 0);
  book.Lease(0, 4, 2);
  CHECK(book.Held(0) == Runs{{2, 4}, {6, 8}});
  CHECK(book.done() == 2);
  CHECK(book.leased() == 6);
}

TEST_CASE("leases: who holds more than it wants keeps it, and gets no more") {
  LeaseBook book = Book();
  book.Lease(0, 4, 2);
  book.Lease(0, 2, 2);
  CHECK(book.Held(0) == Runs{{0, 4}});
}

TEST_CASE("leases: what a lost worker has not done is handed out before anything else") {
  LeaseBook book = Book();
  book.Lease(0, 4, 2);
  book.Lease(1, 4, 2);
  book.Done(0, {0, 1}, 0);
  book.TakeBack(0);
  CHECK(book.taken_back() == 3);
  book.Lease(1, 8, 2);
  CHECK(book.Held(1) == Runs{{1, 9}});
  CHECK(book.Held(0).empty());
}

TEST_CASE("leases: what a worker gives back is for others, and it has nothing else to give") {
  LeaseBook book = Book(20);
  book.Lease(0, 4, 2);
  book.Lease(1, 4, 2);
  book.Done(0, {0, 1}, 0);
  book.Return(0, {0, 3});
  CHECK(book.Held(0) == Runs{{3, 4}});
  book.Return(0, {4, 8});
  book.Return(2, {4, 8});
  book.Return(0, {8, 2});
  CHECK(book.Held(1) == Runs{{4, 8}});
  CHECK(book.taken_back() == 0);
  // A different worker gets returned batches first; the worker that returned them gets them last.
  book.Lease(0, 4, 2);
  CHECK(book.Held(0) == Runs{{3, 4}, {8, 11}});
  book.Lease(1, 5, 2);
  CHECK(book.Held(1) == Runs{{1, 2}, {4, 8}});
  for (int i = 0; i < 20; ++i) book.Lease(0, LeaseBook::kStockMax, 1);
  CHECK(book.all_leased());
  CHECK(book.Held(0).front() == Interval{2, 4});
  CHECK(book.done() == 1);
}

TEST_CASE("leases: what all have given back is still done by somebody") {
  LeaseBook book = Book();
  for (const uint32_t rank : {0, 1}) {
    book.Lease(rank, 1, 2);
    CHECK(book.Held(rank) == Runs{{0, 1}});
    book.Return(rank, {0, 1});
  }
  // Both workers were late with it. The one that was not the last to return it gets it.
  book.Lease(1, 1, 2);
  CHECK(book.Held(1) == Runs{{1, 2}});
  book.Lease(0, 1, 2);
  CHECK(book.Held(0) == Runs{{0, 1}});
  // The other batches are lost.
  book.Return(0, {0, 1});
  book.Lease(0, 1, 1);
  CHECK(book.Held(0) == Runs{{0, 1}});
}

TEST_CASE("leases: a late report counts if nobody else has the batch, and is ignored otherwise") {
  LeaseBook book = Book();
  book.Lease(0, 4, 2);
  book.TakeBack(0);
  book.Lease(1, 2, 2);
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
      book.Lease(rank, 100, 2);
      // Towards the end a worker holds a share of what is left, at least one batch.
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
  book.Lease(0, 100, 2);
  CHECK(book.Held(0) == Runs{{0, 10}});
  book.Lease(1, 100, 2);
  CHECK(book.Held(1) == Runs{{10, 17}});
}

TEST_CASE("leases: a cut has what was contributed before it, and the rest is handed out again") {
  LeaseBook book = Book();
  book.Lease(0, 4, 2);
  book.Lease(1, 4, 2);
  book.Done(0, {0, 1}, 0);
  book.Done(0, {1, 2}, 1);
  book.Done(1, {4, 5}, 0);
  const v1::DataProgress cut = book.At({1, 1});
  CHECK(cut.next() == 8);
  book.Forget({1, 1});
  book.Done(0, {2, 4}, 2);
  LeaseBook again = Book();
  REQUIRE(again.Restore(cut).ok());
  again.Lease(0, 7, 2);
  // Batches 0 and 4 are done.
  CHECK(again.Held(0) == Runs{{1, 4}, {5, 9}});
  // The next cut still has what the older one had.
  CHECK(book.At({3, 1}).open_size() == 1);
  CHECK(book.At({3, 1}).open(0).first() == 5);
}

TEST_CASE("leases: a worker whose clocks are long gets its share, and leaves the others theirs") {
  LeaseBook book({.batches_per_epoch = 1000, .batches = 1000, .under_way = 1000});
  // All batches of worker 0 belong to the clock under way; it has none left for its steps.
  uint64_t held = 0;
  for (int i = 0; i < 20; ++i) {
    book.Lease(0, held + 4, 2);
    uint64_t now = 0;
    for (const Interval& run : book.Held(0)) now += run.size();
    CHECK(now == held + 4);
    held = now;
  }
  // A worker that asks for many batches gets a share of what is left: of 920, shared by two.
  book.Lease(1, 1000, 2);
  CHECK(book.Held(1) == Runs{{80, 310}});
  // A single worker would have got half.
  LeaseBook alone({.batches_per_epoch = 1000, .batches = 1000, .under_way = 1000});
  alone.Lease(0, 1000, 1);
  CHECK(alone.Held(0) == Runs{{0, 500}});
}

TEST_CASE("leases: clocks may have more batches than a worker may have in stock") {
  constexpr uint64_t kSteps = 10'000;
  LeaseBook book({.batches_per_epoch = 10, .under_way = 2 * kSteps});
  for (uint64_t held = 0; held < kSteps; held += 1000) book.Lease(0, held + 1000, 2);
  CHECK(book.Held(0) == Runs{{0, kSteps}});
  book.Lease(0, std::numeric_limits<uint64_t>::max(), 2);
  book.Lease(0, std::numeric_limits<uint64_t>::max(), 2);
  book.Lease(0, std::numeric_limits<uint64_t>::max(), 2);
  book.Lease(0, std::numeric_limits<uint64_t>::max(), 2);
  CHECK(book.leased() == 2 * kSteps + LeaseBook::kStockMax);
}

v1::DataProgress Progress(uint64_t batches_per_epoch, uint64_t next,
                          std::initializer_list<std::pair<uint64_t, uint64_t>> open) {
  v1::DataProgress progress;
  progress.set_batches_per_epoch(batches_per_epoch);
  progress.set_next(next);
  for (const auto& [first, count] : open) {
    v1::DataRange* range = progress.add_open();
    range->set_first(first);
    range->set_count(count);
  }
  return progress;
}

TEST_CASE("leases: what no book has said is refused by its field, and changes nothing") {
  LeaseBook book = Book(100);
  REQUIRE(book.Restore(Progress(10, 50, {{3, 2}, {7, 1}, {49, 1}})).ok());
  const std::string before = book.At({}).SerializeAsString();
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const std::vector<std::pair<v1::DataProgress, std::string>> bad = {
      {Progress(10, kMost, {}), "next"},
      {Progress(10, 50, {{49, 2}}), "open[0]"},
      {Progress(10, 50, {{3, 0}}),
       "open[0] has 0 batches from batch 3, but the range before it ends at 0"},
      // The end of this interval wraps around.
      {Progress(10, 50, {{0, 1}, {3, kMost - 1}}), "open[1]"},
      {Progress(10, 50, {{kMost, 2}}), "open[0]"},
      {Progress(10, 50, {{3, 4}, {6, 1}}), "open[1]"},
      {Progress(10, 50, {{3, 4}, {7, 1}}), "open[1]"},
      {Progress(10, 50, {{30, 4}, {3, 1}}), "open[1]"}};
  for (const auto& [progress, field] : bad) {
    INFO(progress.ShortDebugString());
    const absl::Status status = book.Restore(progress);
    CHECK(absl::IsDataLoss(status));
    CHECK_THAT(status.ToString(), Catch::Matchers::Contains(field));
  }
  const absl::Status other = book.Restore(Progress(9, 50, {}));
  CHECK(absl::IsFailedPrecondition(other));
  CHECK_THAT(other.ToString(),
             Catch::Matchers::Contains("is 9,") && Catch::Matchers::Contains("has 10 batches now"));
  CHECK(book.At({}).SerializeAsString() == before);
  CHECK(book.Restore(Progress(10, LeaseBook::kBatchMax, {})).ok());
}

TEST_CASE("leases: what was done before a book is restored is not done in it") {
  LeaseBook book = Book();
  book.Lease(0, 1, 1);
  book.Done(0, {0, 1}, 0);
  REQUIRE(book.Restore(Progress(10, 50, {{3, 2}})).ok());
  CHECK(book.At({0}).SerializeAsString() == Progress(10, 50, {{3, 2}}).SerializeAsString());
}

TEST_CASE(
    "leases: a job that is shorter than its checkpoint is over when what it has left is done") {
  LeaseBook book = Book(20);
  REQUIRE(book.Restore(Progress(10, 30, {{5, 1}, {18, 5}, {28, 1}})).ok());
  book.Lease(0, 100, 1);
  book.Lease(0, 100, 1);
  book.Lease(0, 100, 1);
  CHECK(book.Held(0) == Runs{{5, 6}, {18, 20}});
  book.Done(0, {0, 30}, 0);
  CHECK(book.over());
  CHECK(book.done() == 20);
}

TEST_CASE(
    "leases: while no cut becomes durable what is kept is bounded, and nothing is forgotten") {
  LeaseBook book({.batches_per_epoch = 10, .under_way = 1});
  constexpr uint64_t kMany = 4 * LeaseBook::kRecentMax;
  for (uint64_t i = 0; i < kMany; ++i) {
    const auto rank = static_cast<uint32_t>(i % 2);
    book.Lease(rank, 1, 2);
    book.Done(rank, {i, i + 1}, i / 2);
  }
  // A cut in the middle has at most what came before it; doubtful batches are open.
  const v1::DataProgress cut = book.At({kMany / 4, kMany / 4});
  REQUIRE(cut.open_size() == 1);
  CHECK(cut.open(0).first() < kMany / 2);
  CHECK(cut.open(0).first() + cut.open(0).count() == kMany);
  // A cut after everything has everything.
  CHECK(book.At({kMany, kMany}).open_size() == 0);
  CHECK(book.At({kMany, kMany / 2 - 1}).open(0).first() + 1 >= kMany - 1);
  CHECK(book.At({kMany, 0}).open(0).first() == 0);
  book.Forget({kMany, kMany});
  CHECK(book.At({0, 0}).open_size() == 0);
}

// Workers come, work and leave, and now and then the job goes back to a cut. The test knows which
// work each cut contains. In the end every batch must have counted.
TEST_CASE("leases: in any order of deaths and rewinds every batch of the job counts in the end") {
  constexpr uint64_t kBatches = 60;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    INFO(seed);
    RandomStream draws(seed, RandomPurpose::kEmulate, {6});
    LeaseBook book({.batches_per_epoch = 10, .batches = kBatches});
    std::vector<uint64_t> clocks(3);
    std::multiset<uint64_t> counted, in_cut;
    std::vector<uint64_t> cut_clocks(3);
    v1::DataProgress cut = book.At({});
    for (int step = 0; step < 5000 && !book.over(); ++step) {
      const auto rank = static_cast<uint32_t>(draws.Below(3));
      const uint64_t dice = draws.Below(100);
      if (dice < 45) {
        book.Lease(rank, 1 + draws.Below(6), 3);
      } else if (dice < 90) {
        const Runs held = book.Held(rank);
        if (held.empty()) continue;
        const Interval run{held[0].first, held[0].first + 1};
        counted.insert(run.first);
        // This worker dies before it reports.
        if (draws.Below(10) == 0) {
          ++clocks[rank];
          book.TakeBack(rank);
        } else {
          book.Done(rank, run, clocks[rank]++);
        }
      } else if (dice < 92) {
        const Runs held = book.Held(rank);
        if (!held.empty()) book.Return(rank, held.back());
      } else if (dice < 94) {
        book.TakeBack(rank);
      } else if (dice < 98) {
        cut = book.At(clocks);
        in_cut = counted;
        book.Forget(clocks);
      } else {
        REQUIRE(book.Restore(cut).ok());
        counted = in_cut;
      }
    }
    REQUIRE(book.over());
    for (uint64_t batch = 0; batch < kBatches; ++batch) CHECK(counted.count(batch) >= 1);
  }
}

}  // namespace
}  // namespace leeway::lease_book
