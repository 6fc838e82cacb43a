// When a cut is whole, which states it names, and what happens to cuts that never become whole.
#include "server/coordinator/core/cut_book.h"

#include "tests/catch.h"

namespace leeway::cut_book {
namespace {

using Numbers = std::vector<uint32_t>;
using Clocks = std::vector<uint64_t>;
using Folders = std::set<uint64_t>;
using std::chrono::seconds;

constexpr Time kBegin = Time(seconds(1000));

v1::SavedShard File(const std::string& name, const std::string& sha256 = "") {
  v1::SavedShard file;
  file.set_file(name);
  file.set_sha256(sha256);
  return file;
}

// Every rank has this need.
CutBook::Needs Always(StateNeed need, uint64_t left_at = 0) {
  return [=](uint64_t, uint32_t) { return std::pair(need, left_at); };
}

const CutBook::Needs kAtCut = Always(StateNeed::kAtCut);

void AddShards(CutBook& book, uint64_t clock, uint32_t shards = 2) {
  for (uint32_t shard = 0; shard < shards; ++shard) {
    REQUIRE(book.AddShard(clock, shard, File("shard" + std::to_string(shard)), kBegin).ok());
  }
}

// Makes a book of two shards and no states.
CutBook Stateless() {
  CutBook book(2, 2, nullptr);
  book.Expect(2, false);
  return book;
}

v1::CheckpointManifest Checkpoint(uint64_t clock) {
  v1::CheckpointManifest manifest;
  manifest.set_clock(clock);
  for (const uint32_t rank : {0, 1}) {
    auto& state = *manifest.add_worker_states();
    state.set_rank(rank);
    *state.mutable_file() = File("old" + std::to_string(rank));
  }
  return manifest;
}

TEST_CASE("cut book: a cut is whole with the part of every shard and the state of every rank") {
  CutBook book(2, 2, nullptr);
  REQUIRE(book.AddShard(4, 1, File("b"), kBegin).ok());
  CHECK(book.MissingOf(4, kAtCut).shards == Numbers{0});
  CHECK(book.MissingOf(4, kAtCut).ranks == Numbers{0, 1});
  REQUIRE(book.AddState(4, 1, File("s1")).ok());
  CHECK(book.MissingOf(4, kAtCut).ranks == Numbers{0});
  CHECK_FALSE(book.HasAllShards(4));
  REQUIRE(book.AddShard(4, 0, File("a"), kBegin).ok());
  CHECK(book.HasAllShards(4));
  CHECK_FALSE(book.TakeWhole(kAtCut));
  REQUIRE(book.AddState(4, 0, File("s0")).ok());
  CHECK(book.MissingOf(4, kAtCut).shards.empty());
  CHECK(book.MissingOf(4, kAtCut).ranks.empty());
  const auto parts = book.TakeWhole(kAtCut);
  REQUIRE(parts);
  CHECK(parts->clock == 4);
  REQUIRE(parts->shards.size() == 2);
  CHECK(parts->shards[0].file() == "a");
  CHECK(parts->shards[1].file() == "b");
  REQUIRE(parts->states.size() == 2);
  CHECK(parts->states.at(0).file.file() == "s0");
  CHECK(parts->states.at(0).clock == 4);
  CHECK(parts->states.at(0).folder == 4);
  CHECK(book.MissingOf(9, kAtCut).shards == Numbers{0, 1});
  CHECK(book.MissingOf(9, kAtCut).ranks == Numbers{0, 1});
}

TEST_CASE(
    "cut book: shards beyond those that have blocks, and states where there are none, are not "
    "needed") {
  CutBook book(3, 2, nullptr);
  book.Expect(1, false);
  REQUIRE(book.AddShard(4, 1, File("beyond"), kBegin).ok());
  CHECK_FALSE(book.latest());
  CHECK(book.MissingOf(4, kAtCut).ranks.empty());
  AddShards(book, 4, 1);
  const auto parts = book.TakeWhole(kAtCut);
  REQUIRE(parts);
  CHECK(parts->shards.size() == 1);
  CHECK(parts->states.empty());
}

TEST_CASE("cut book: of a rank that left its newest state counts, if it is of its last clock") {
  CutBook book(1, 1, nullptr);
  AddShards(book, 6, 1);
  const auto left_at = [&](uint64_t clock) {
    return book.MissingOf(6, Always(StateNeed::kAtLeaving, clock)).ranks.empty();
  };
  CHECK_FALSE(left_at(0));
  REQUIRE(book.AddState(5, 0, File("five")).ok());
  CHECK(left_at(5));
  CHECK(left_at(4));
  CHECK_FALSE(left_at(6));
  // A state of an older clock is not newer, nor is one of the same clock.
  REQUIRE(book.AddState(4, 0, File("four")).ok());
  REQUIRE(book.AddState(5, 0, File("another five")).ok());
  CHECK(left_at(5));
  const auto parts = book.TakeWhole(Always(StateNeed::kAtLeaving, 5));
  REQUIRE(parts);
  CHECK(parts->states.at(0).file.file() == "five");
  CHECK(parts->states.at(0).folder == 5);
}

TEST_CASE("cut book: of a rank that vanished its newest state is taken, or none") {
  for (const bool has : {true, false}) {
    CutBook book(1, 1, nullptr);
    if (has) REQUIRE(book.AddState(2, 0, File("two")).ok());
    AddShards(book, 6, 1);
    const auto parts = book.TakeWhole(Always(StateNeed::kIfAny));
    REQUIRE(parts);
    CHECK(parts->states.size() == (has ? 1 : 0));
  }
}

TEST_CASE("cut book: two different parts of a shard fail the cut, the same one twice does not") {
  CutBook book = Stateless();
  REQUIRE(book.AddShard(4, 0, File("a", "x"), kBegin).ok());
  REQUIRE(book.AddShard(4, 0, File("a", "x"), kBegin).ok());
  CHECK_FALSE(book.Failed(4));
  CHECK(absl::IsFailedPrecondition(book.AddShard(4, 0, File("a", "y"), kBegin)));
  CHECK(book.Failed(4));
  CHECK_THAT(book.ErrorOf(4), Catch::Contains("shard 0"));
  CHECK(book.ErrorOf(5).empty());
  CHECK_FALSE(book.Failed(5));
  // Parts that come for it are ignored.
  REQUIRE(book.AddShard(4, 1, File("b"), kBegin).ok());
  CHECK_FALSE(book.HasAllShards(4));
  CHECK_FALSE(book.TakeWhole(kAtCut));
}

TEST_CASE("cut book: a cut that was said to fail fails, with the first reason") {
  CutBook book = Stateless();
  AddShards(book, 4, 1);
  book.Fail(4, "");
  CHECK(book.ErrorOf(4) == "unknown error");
  book.Fail(4, "later");
  CHECK(book.ErrorOf(4) == "unknown error");
  book.Fail(5, "no space");
  CHECK(book.ErrorOf(5) == "no space");
  AddShards(book, 6);
  REQUIRE(book.TakeWhole(kAtCut));
  book.Fail(6, "too late");
  CHECK_FALSE(book.Failed(6));
}

TEST_CASE("cut book: the last cut wants every shard anew, and forgets why it failed") {
  CutBook book = Stateless();
  REQUIRE(book.AddShard(4, 0, File("a", "x"), kBegin).ok());
  book.Fail(4, "no space");
  book.BeginLast(4, kBegin + seconds(5));
  CHECK_FALSE(book.Failed(4));
  CHECK(book.MissingOf(4, kAtCut).shards == Numbers{0, 1});
  CHECK(book.Expire(kBegin + seconds(15), seconds(10)).empty());
  CHECK(book.Expire(kBegin + seconds(16), seconds(10)) == Clocks{4});
  book.BeginLast(4, kBegin);
  REQUIRE(book.AddShard(4, 0, File("a", "y"), kBegin).ok());
  REQUIRE(book.AddShard(4, 1, File("b"), kBegin).ok());
  REQUIRE(book.TakeWhole(kAtCut));
  // The cut is being written, and then it is complete: no new one begins.
  book.BeginLast(4, kBegin);
  CHECK(book.HasAllShards(4));
  book.Written(4, absl::OkStatus());
  book.BeginLast(4, kBegin);
  book.BeginLast(3, kBegin);
  CHECK_FALSE(book.Writing(4));
  REQUIRE(book.AddState(4, 0, File("late")).ok());
  CHECK(book.Expire(kBegin + seconds(99), seconds(10)).empty());
}

TEST_CASE("cut book: the newest whole one is written, one at a time, older ones are dropped then") {
  CutBook book = Stateless();
  for (const uint64_t clock : {2, 4, 6}) AddShards(book, clock);
  REQUIRE(book.AddShard(8, 0, File("a"), kBegin).ok());
  CHECK(book.latest() == 8);
  CHECK_FALSE(book.WritingAny());
  CHECK(book.TakeWhole(kAtCut)->clock == 6);
  CHECK(book.Writing(6));
  CHECK_FALSE(book.Writing(4));
  CHECK_FALSE(book.Writing(7));
  CHECK(book.WritingAny());
  CHECK_FALSE(book.TakeWhole(kAtCut));
  book.Written(6, absl::OkStatus());
  CHECK(book.newest() == 6);
  CHECK_FALSE(book.WritingAny());
  CHECK_FALSE(book.TakeWhole(kAtCut));
  CHECK_FALSE(book.HasAllShards(4));
  // Parts of settled cuts are ignored. An open cut is whole with its last part.
  AddShards(book, 6);
  CHECK_FALSE(book.TakeWhole(kAtCut));
  REQUIRE(book.AddShard(8, 1, File("b"), kBegin).ok());
  CHECK(book.TakeWhole(kAtCut)->clock == 8);
  CHECK(book.latest() == 8);
  book.Written(99, absl::OkStatus());
  CHECK(book.newest() == 6);
}

TEST_CASE("cut book: a manifest that could not be written fails its cut alone") {
  CutBook book = Stateless();
  AddShards(book, 2);
  AddShards(book, 4);
  REQUIRE(book.TakeWhole(kAtCut)->clock == 4);
  book.Written(4, absl::ResourceExhaustedError("no space left"));
  CHECK(book.Failed(4));
  CHECK(book.ErrorOf(4) == "its manifest: no space left");
  CHECK_FALSE(book.Writing(4));
  CHECK_FALSE(book.newest());
  CHECK(book.TakeWhole(kAtCut)->clock == 2);
}

TEST_CASE("cut book: the newest clock is that of a part or of a manifest, not of a failure") {
  CutBook book = Stateless();
  CHECK_FALSE(book.latest());
  book.Fail(9, "no space");
  CHECK_FALSE(book.latest());
  AddShards(book, 2);
  AddShards(book, 4, 1);
  CHECK(book.latest() == 4);
  const v1::CheckpointManifest manifest = Checkpoint(7);
  CHECK(CutBook(2, 2, &manifest).latest() == 7);
  CHECK(CutBook(2, 2, &manifest).newest() == 7);
}

TEST_CASE("cut book: cuts that wait for longer than they may fail, those without a shard may") {
  CutBook book = Stateless();
  REQUIRE(book.AddShard(2, 0, File("a"), kBegin).ok());
  REQUIRE(book.AddShard(2, 0, File("a"), kBegin + seconds(9)).ok());
  REQUIRE(book.AddShard(4, 0, File("a"), kBegin + seconds(2)).ok());
  REQUIRE(book.AddState(6, 0, File("s")).ok());
  CHECK(book.Expire(kBegin + seconds(10), seconds(10)).empty());
  CHECK(book.Expire(kBegin + seconds(11), seconds(10)) == Clocks{2});
  CHECK(book.Failed(2));
  CHECK(book.Expire(kBegin + seconds(13), seconds(10)) == Clocks{4});
  AddShards(book, 8);
  REQUIRE(book.TakeWhole(kAtCut));
  CHECK(book.Expire(kBegin + seconds(99), seconds(10)).empty());
}

TEST_CASE("cut book: states stay in the folders that name them") {
  const v1::CheckpointManifest manifest = Checkpoint(3);
  CutBook book(1, 2, &manifest);
  CHECK(book.StateFolders() == Folders{3});
  // This state is from before the job was resumed: every state that comes is newer.
  REQUIRE(book.AddState(1, 0, File("one")).ok());
  CHECK(book.StateFolders() == Folders{1, 3});
  REQUIRE(book.AddState(5, 0, File("five")).ok());
  AddShards(book, 6, 1);
  REQUIRE(book.TakeWhole(Always(StateNeed::kIfAny)));
  CHECK(book.StateFolders() == Folders{3, 5});
  // A newer state comes while the manifest is being written, and is kept.
  REQUIRE(book.AddState(7, 1, File("seven")).ok());
  book.Written(6, absl::OkStatus());
  CHECK(book.StateFolders() == Folders{6, 7});
}

TEST_CASE(
    "cut book: a job that goes back knows what its checkpoint consists of, and nothing newer") {
  const v1::CheckpointManifest manifest = Checkpoint(3);
  CutBook book(1, 2, &manifest);
  REQUIRE(book.AddState(9, 0, File("nine")).ok());
  AddShards(book, 9, 1);
  book.GoBack();
  CHECK(book.latest() == 3);
  CHECK(book.StateFolders() == Folders{3});
  AddShards(book, 5, 1);
  // A state of a smaller clock is newer than one from before the resumption.
  REQUIRE(book.AddState(1, 0, File("one")).ok());
  const auto parts = book.TakeWhole(Always(StateNeed::kIfAny));
  REQUIRE(parts);
  CHECK(parts->states.at(0).file.file() == "one");
  CHECK(parts->states.at(1).file.file() == "old1");
}

TEST_CASE("cut book: after a job has gone back to a cut of its own, states count anew") {
  CutBook book(1, 1, nullptr);
  REQUIRE(book.AddState(4, 0, File("four")).ok());
  AddShards(book, 4, 1);
  REQUIRE(book.TakeWhole(kAtCut));
  book.Written(4, absl::OkStatus());
  book.GoBack();
  REQUIRE(book.AddState(2, 0, File("two")).ok());
  AddShards(book, 6, 1);
  CHECK(book.TakeWhole(Always(StateNeed::kIfAny))->states.at(0).file.file() == "two");
}

TEST_CASE("cut book: open cuts are bounded, and one that has failed makes room") {
  CutBook book = Stateless();
  for (uint64_t clock = 1; clock <= 1024; ++clock) AddShards(book, clock, 1);
  CHECK(absl::IsResourceExhausted(book.AddShard(1025, 0, File("a"), kBegin)));
  REQUIRE(book.AddShard(1024, 1, File("b"), kBegin).ok());
  CHECK(book.AddState(1025, 0, File("s")).ok());
  book.Fail(1026, "no room to say so");
  CHECK_FALSE(book.Failed(1026));
  book.Fail(500, "no space");
  REQUIRE(book.AddShard(1025, 0, File("a"), kBegin).ok());
  CHECK_FALSE(book.Failed(500));
  CHECK(book.latest() == 1025);
}

}  // namespace
}  // namespace leeway::cut_book
