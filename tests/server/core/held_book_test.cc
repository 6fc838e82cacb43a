#include "server/core/held_book.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "common/philox.h"
#include "tests/catch.h"

namespace leeway::held_book {
namespace {

using Ranks = std::vector<uint32_t>;

// Two blocks and three workers, one of which may be missing.
HeldBook OneBackup() { return HeldBook({.workers = 3, .backup = 1, .blocks = 2}); }

// A report whose contributions were all there at its own time.
HeldClock Told(uint64_t clock, const Ranks& ranks, bool again) {
  return {clock, ranks, again, std::vector<Duration>(ranks.size())};
}

void AcceptAll(HeldBook& book, uint32_t rank, uint64_t clock) {
  book.OnAccepted(rank, clock);
  book.OnAccepted(rank, clock);
}

TEST_CASE("held: a contribution counts once every block has it, and is told once enough do") {
  HeldBook book = OneBackup();
  AcceptAll(book, 2, 0);
  CHECK_FALSE(book.OnAccepted(0, 0));
  CHECK_FALSE(book.Take());
  CHECK(book.OnAccepted(0, 0));
  CHECK(book.Take() == Told(0, Ranks{0, 2}, false));
  CHECK_FALSE(book.Take());
}

TEST_CASE("held: another one that becomes whole before the set is told too") {
  HeldBook book = OneBackup();
  AcceptAll(book, 0, 0);
  AcceptAll(book, 1, 0);
  REQUIRE(book.Take());
  AcceptAll(book, 2, 0);
  CHECK(book.Take() == Told(0, Ranks{0, 1, 2}, true));
}

TEST_CASE("held: of a shard that was taken over, blocks that were ahead get nothing of the clock") {
  HeldBook book = OneBackup();
  book.OnLoaded(5);
  book.OnLoaded(4);
  CHECK(book.OnAccepted(0, 4));
  CHECK(book.OnAccepted(2, 4));
  CHECK(book.Take() == Told(4, Ranks{0, 2}, false));
  book.OnCommitted(4);
  CHECK_FALSE(book.OnAccepted(0, 5));
  CHECK(book.OnAccepted(0, 5));
}

TEST_CASE("held: after the set nothing of its clock is told") {
  HeldBook book = OneBackup();
  AcceptAll(book, 0, 0);
  AcceptAll(book, 1, 0);
  book.OnCommitted(0);
  AcceptAll(book, 2, 0);
  CHECK_FALSE(book.Take());
  AcceptAll(book, 0, 1);
  AcceptAll(book, 2, 1);
  CHECK(book.Take() == Told(1, Ranks{0, 2}, false));
}

TEST_CASE("held: what no set came of is told again, and says so") {
  HeldBook book = OneBackup();
  book.TellAgain();
  AcceptAll(book, 0, 0);
  book.TellAgain();
  CHECK_FALSE(book.Take());
  AcceptAll(book, 1, 0);
  REQUIRE(book.Take());
  book.TellAgain();
  CHECK(book.Take() == Told(0, Ranks{0, 1}, true));
}

TEST_CASE("held: it is told for how long each has been held") {
  HeldBook book({.workers = 2, .blocks = 1});
  const Time t = Time(std::chrono::seconds(1));
  book.OnAccepted(0, 0, t);
  book.OnAccepted(1, 0, t + std::chrono::milliseconds(3));
  const auto told = book.Take(t + std::chrono::milliseconds(5));
  REQUIRE(told);
  CHECK(told->held ==
        std::vector<Duration>{std::chrono::milliseconds(5), std::chrono::milliseconds(2)});
}

TEST_CASE("held: who is refused after the set is told, until the next set, no older one is") {
  HeldBook book({.workers = 3, .blocks = 1});
  for (const uint32_t rank : {0, 1, 2}) book.OnAccepted(rank, 0);
  REQUIRE(book.Take());
  book.OnRefused(0, 0);
  CHECK_FALSE(book.Take());
  book.OnCommitted(0);
  CHECK_FALSE(book.Take());
  for (const uint32_t rank : {2, 1, 2}) book.OnRefused(rank, 0);
  const HeldClock told{.clock = 1, .refused = {1, 2}};
  CHECK(book.Take() == told);
  CHECK_FALSE(book.Take());
  book.TellAgain();
  CHECK(book.Take() == told);
  // The refusal was not reported yet when the next set comes.
  book.OnRefused(0, 0);
  book.OnCommitted(1);
  CHECK_FALSE(book.Take());
  book.OnRefused(1, 0);
  book.TellAgain();
  CHECK_FALSE(book.Take());
}

TEST_CASE("held: where only the living are waited for, a death makes enough of what is held") {
  HeldBook book({.workers = 3, .live_only = true, .blocks = 1});
  book.OnAccepted(0, 0);
  book.OnAccepted(1, 0);
  CHECK_FALSE(book.Take());
  book.OnLive(2, false);
  CHECK(book.Take() == Told(0, Ranks{0, 1}, false));
  book.OnCommitted(0);
  book.OnLive(2, true);
  book.OnAccepted(0, 1);
  book.OnAccepted(1, 1);
  CHECK_FALSE(book.Take());
}

TEST_CASE("held: who is no rank of the job is in no clock, in no wait and in no refusal") {
  HeldBook book({.workers = 2, .live_only = true, .blocks = 1});
  book.OnLive(2, false);
  CHECK_FALSE(book.OnAccepted(2, 0));
  CHECK(book.OnAccepted(0, 0));
  // Rank 1 is live and missing.
  CHECK_FALSE(book.Take());
  CHECK(book.OnAccepted(1, 0));
  CHECK(book.Take() == Told(0, Ranks{0, 1}, false));
  book.OnCommitted(0);
  book.OnRefused(2, 0);
  CHECK_FALSE(book.Take());
}

TEST_CASE("held: of blocks that were ahead at several clocks each comes in when its own is open") {
  HeldBook book({.workers = 1, .blocks = 3});
  book.OnLoaded(0);
  book.OnLoaded(2);
  book.OnLoaded(4);
  CHECK(book.OnAccepted(0, 0));
  CHECK(book.OnAccepted(0, 1));
  CHECK_FALSE(book.OnAccepted(0, 2));
  CHECK(book.OnAccepted(0, 2));
  for (uint64_t clock = 0; clock < 4; ++clock) book.OnCommitted(clock);
  CHECK_FALSE(book.OnAccepted(0, 4));
  CHECK_FALSE(book.OnAccepted(0, 4));
  CHECK(book.OnAccepted(0, 4));
  // A contribution that begins at the open clock or behind it is not ahead.
  book.OnCommitted(4);
  book.OnLoaded(5);
  book.OnLoaded(3);
  CHECK_FALSE(book.OnAccepted(0, 5));
  CHECK_FALSE(book.OnAccepted(0, 5));
  CHECK(book.OnAccepted(0, 5));
}

TEST_CASE("held: nothing of what nobody holds is told, however many may be missing") {
  HeldBook book({.workers = 2, .backup = 2, .blocks = 2});
  book.OnAccepted(0, 0);
  CHECK_FALSE(book.Take());
  book.OnAccepted(0, 0);
  CHECK(book.Take() == Told(0, Ranks{0}, false));
  // The set of an earlier clock says nothing about this clock.
  AcceptAll(book, 1, 1);
  book.OnCommitted(0);
  book.OnCommitted(0);
  CHECK(book.Take() == Told(1, Ranks{1}, false));
}

TEST_CASE("held: what came ahead of a set stays when the set comes") {
  HeldBook book({.workers = 2, .blocks = 1});
  book.OnLoaded(1);
  for (const uint32_t rank : {0, 1}) CHECK(book.OnAccepted(rank, 1));
  book.OnCommitted(0);
  CHECK(book.Take() == Told(1, Ranks{0, 1}, false));
  book.OnCommitted(1);
  CHECK_FALSE(book.OnAccepted(0, 1));
  CHECK(book.OnAccepted(0, 2));
}

TEST_CASE("held: what is whole is so once, a set that is repeated changes nothing") {
  HeldBook book({.workers = 2, .blocks = 1});
  const Time t = Time(std::chrono::seconds(1));
  CHECK(book.OnAccepted(0, 0, t));
  CHECK(book.OnAccepted(1, 0, t));
  REQUIRE(book.Take(t));
  // It was refused for its values, and is sent anew.
  CHECK_FALSE(book.OnAccepted(0, 0, t + std::chrono::seconds(1)));
  CHECK_FALSE(book.Take(t));
  book.TellAgain();
  CHECK(book.Take(t) == Told(0, Ranks{0, 1}, true));
  book.OnCommitted(0);
  book.OnRefused(1, 0);
  book.OnAccepted(0, 1, t);
  book.OnCommitted(0);
  CHECK(book.Take(t) == HeldClock{.clock = 1, .refused = {1}});
  book.OnAccepted(1, 1, t);
  CHECK(book.Take(t) == Told(1, Ranks{0, 1}, false));
}

TEST_CASE("held: nothing is enough, however many may be missing") {
  HeldBook book({.workers = 2, .backup = 2, .live_only = true, .blocks = 2});
  book.OnAccepted(0, 0);
  for (const uint32_t rank : {0, 1}) book.OnLive(rank, false);
  CHECK_FALSE(book.Take());
  // A lost worker's contribution is reported, but not waited for.
  CHECK(book.OnAccepted(0, 0));
  CHECK_FALSE(book.Take());
  book.OnLive(0, true);
  CHECK(book.Take() == Told(0, Ranks{0}, false));
}

// Records for each block what it holds.
class NaiveBook {
 public:
  static constexpr uint64_t kClocks = 3;

  NaiveBook(const HeldBook::Rules& rules, RandomStream& draws) : rules_(rules), draws_(draws) {}

  void Run() {
    HeldBook book(rules_);
    for (int step = 0; step < 60 && open_ < kClocks; ++step) {
      const auto rank = static_cast<uint32_t>(draws_.Below(rules_.workers));
      switch (draws_.Below(8)) {
        case 0:
          live_[rank] = !live_[rank];
          book.OnLive(rank, live_[rank]);
          break;
        case 1:
          if (draws_.Below(4) == 0) book.OnCommitted(open_++);
          break;
        default:
          Accept(book, rank, static_cast<uint32_t>(draws_.Below(rules_.blocks)));
      }
      CheckTold(book);
    }
  }

 private:
  Ranks WholeAt(uint64_t clock) const {
    Ranks whole;
    for (uint32_t rank = 0; rank < rules_.workers; ++rank) {
      const auto& blocks = holds_[clock][rank];
      if (std::all_of(blocks.begin(), blocks.begin() + rules_.blocks, [](bool b) { return b; })) {
        whole.push_back(rank);
      }
    }
    return whole;
  }

  void Accept(HeldBook& book, uint32_t rank, uint32_t block) {
    bool& here = holds_[open_][rank][block];
    if (std::exchange(here, true)) return;
    const Ranks whole = WholeAt(open_);
    const bool is_whole = std::count(whole.begin(), whole.end(), rank) > 0;
    CHECK(book.OnAccepted(rank, open_) == is_whole);
  }

  // Checks that the whole contributions are reported once enough of the awaited workers' are whole,
  // and again when more are.
  void CheckTold(HeldBook& book) {
    const Ranks whole = open_ < kClocks ? WholeAt(open_) : Ranks();
    const auto waited_for = [&](uint32_t rank) { return !rules_.live_only || live_[rank]; };
    uint32_t wanted = 0;
    for (uint32_t rank = 0; rank < rules_.workers; ++rank) wanted += waited_for(rank) ? 1 : 0;
    const auto held = std::count_if(whole.begin(), whole.end(), waited_for);
    const bool enough = held > 0 && held + rules_.backup >= wanted;
    const bool known = told_at_ == open_ && told_ == whole;
    const auto told = book.Take();
    REQUIRE(told.has_value() == (enough && !known));
    if (!told) return;
    CHECK(*told == Told(open_, whole, told_at_ == open_));
    told_ = whole;
    told_at_ = open_;
  }

  const HeldBook::Rules rules_;
  RandomStream& draws_;
  uint64_t open_ = 0;
  std::array<bool, 4> live_ = {true, true, true, true};
  // By clock, rank and block.
  std::array<std::array<std::array<bool, 3>, 4>, kClocks> holds_{};
  Ranks told_;
  std::optional<uint64_t> told_at_;
};

TEST_CASE("held: over random histories exactly what is whole is told, when it is enough") {
  RandomStream draws(1, RandomPurpose::kEmulate, {1});
  for (int history = 0; history < 3000; ++history) {
    HeldBook::Rules rules;
    rules.workers = 1 + static_cast<uint32_t>(draws.Below(4));
    rules.backup = static_cast<uint32_t>(draws.Below(rules.workers));
    rules.live_only = draws.Below(2) == 0;
    rules.blocks = 1 + static_cast<uint32_t>(draws.Below(3));
    NaiveBook(rules, draws).Run();
  }
}

}  // namespace
}  // namespace leeway::held_book
