#include "server/core/held_book.h"

#include "tests/catch.h"

namespace leeway {
namespace {

using Ranks = std::vector<uint32_t>;

// Of three workers, one of whom may be missing; two blocks.
HeldBook OneBackup() { return HeldBook({.workers = 3, .backup = 1, .blocks = 2}); }

// Told at the moment at which it became whole.
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

TEST_CASE("held: who is refused after the set is told, until the next set; no older one is") {
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
  // Not told yet when the next set comes.
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

}  // namespace
}  // namespace leeway
