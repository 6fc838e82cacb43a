#include "server/core/life_book.h"

#include "tests/catch.h"

namespace leeway::life_book {
namespace {

TEST_CASE("only incarnations that the coordinator gave out are believed") {
  LifeBook book(2);
  book.Learn({5, 0});
  CHECK(book.Check(0, 5).ok());
  CHECK(absl::IsAborted(book.Check(0, 4)));
  // The server may be about to hear of this life.
  CHECK(absl::IsUnavailable(book.Check(0, 6)));
  CHECK(absl::IsUnavailable(book.Check(0, UINT64_MAX)));
  CHECK(absl::IsUnavailable(book.Check(1, 1)));
  CHECK(absl::IsUnavailable(book.Check(1, 0)));
  // Another check refuses it.
  CHECK(book.Check(2, 9).ok());
  // A life that was only believed for a moment fences nobody off.
  book.Learn({6, 1});
  CHECK(book.Check(0, 6).ok());
  CHECK(book.Check(1, 1).ok());
}

TEST_CASE("a coordinator that was started again takes no life back") {
  LifeBook book(1);
  book.Learn({5});
  book.Learn({0});
  CHECK(book.Check(0, 5).ok());
  book.Learn({1000});
  CHECK(absl::IsAborted(book.Check(0, 5)));
  CHECK(book.Check(0, 1000).ok());
}

TEST_CASE("a server that nobody tells of lives believes them all") {
  CHECK(LifeBook().Check(0, UINT64_MAX).ok());
}

}  // namespace
}  // namespace leeway::life_book
