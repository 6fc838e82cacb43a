// What is on record, and the state of the job.
#include "server/coordinator/core/record_book.h"

#include "server/coordinator/core/lifecycle.h"
#include "tests/catch.h"

namespace leeway::record_book {
namespace {

using std::chrono::seconds;

v1::CoordinatorRecord Of(uint64_t generation, uint64_t epoch) {
  v1::CoordinatorRecord record;
  record.set_generation(generation);
  record.mutable_placement()->set_epoch(epoch);
  return record;
}

TEST_CASE("record: incarnations are set aside a thousand at a time") {
  RecordBook book(10);
  CHECK(book.incarnations() == 1010);
  CHECK_FALSE(book.Reserve(1010));
  CHECK(book.Reserve(1011));
  CHECK(book.incarnations() == 2011);
  CHECK_FALSE(book.HasIncarnation(1));
  v1::CoordinatorRecord record = Of(0, 0);
  record.set_incarnations(1010);
  book.Written(record);
  CHECK(book.HasIncarnation(1010));
  CHECK_FALSE(book.HasIncarnation(1011));
}

TEST_CASE("record: a generation and an epoch are on record with a durable one as new") {
  RecordBook book(0);
  CHECK_FALSE(book.Has(0, 1));
  book.Written(Of(1, 2));
  CHECK(book.Has(1, 2));
  CHECK(book.Has(0, 9));
  CHECK_FALSE(book.Has(1, 3));
  CHECK_FALSE(book.Has(2, 0));
  // A record that is written late takes nothing back.
  book.Written(Of(0, 7));
  CHECK(book.Has(1, 2));
}

TEST_CASE("record: that the job has begun stays, and the end is sealed once") {
  RecordBook book(0);
  v1::CoordinatorRecord begun = Of(0, 0);
  begun.set_steps_per_epoch(3);
  book.Written(begun);
  book.Written(Of(0, 0));
  CHECK(book.begun());
  CHECK_FALSE(book.sealed());
  CHECK(book.Seal());
  CHECK_FALSE(book.Seal());
  CHECK(book.sealed());
}

TEST_CASE("lifecycle: going back begins a generation, and what is called running goes on") {
  const Time begin = Time(seconds(100));
  Lifecycle life(4, begin);
  CHECK(life.state(v1::JOB_FAILED) == v1::JOB_STARTING);
  CHECK_FALSE(life.under_way());
  CHECK_FALSE(life.began());
  life.Begin(begin + seconds(1));
  CHECK(life.under_way());
  CHECK(life.began() == begin + seconds(1));
  life.GoBack("a server is lost", begin + seconds(2));
  CHECK_FALSE(life.under_way());
  CHECK(life.generation() == 5);
  CHECK(life.going_back_why() == "a server is lost");
  CHECK(life.going_back_since() == begin + seconds(2));
  CHECK(life.state(v1::JOB_FAILED) == v1::JOB_RUNNING);
  life.TakeUp(3);
  CHECK(life.generation() == 3);
  life.Enter(Phase::kSaving);
  CHECK(life.under_way());
  CHECK(life.state(v1::JOB_FAILED) == v1::JOB_STOPPING);
  life.Enter(Phase::kOver);
  CHECK_FALSE(life.under_way());
  CHECK(life.state(v1::JOB_STOPPED) == v1::JOB_STOPPED);
}

}  // namespace
}  // namespace leeway::record_book
