#include "server/peers/piece_store.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <thread>

#include "tests/catch.h"
#include "tests/server/peers/peers_rig.h"
#include "tests/server/shard/waiting_sender.h"

namespace leeway::piece_store {
namespace {

using Catch::Contains;
using testing::FakeWaitingSender;
using testing::HeaderOf;
using testing::kAsked;
using testing::kPeersJob;
using testing::kPeersLayout;
using testing::PeerReply;

struct World {
  explicit World(std::shared_ptr<SharedArena> memory = nullptr)
      : store(kAsked, [memory] { return memory; }) {
    store.Open(kPeersJob, 0, kPeersLayout);
  }
  void Publish(const PieceName& name, float value, uint64_t examples = 0) {
    const std::span<float> values = store.Prepare(name);
    std::fill(values.begin(), values.end(), value);
    store.Publish(name, examples, 0);
  }
  void Fetch(PeerReply& reply, const PieceName& name, Patience patience = {}) {
    store.Fetch(HeaderOf(1, name.clock, name.block), name.piece, now, reply.Done(),
                std::move(patience));
  }
  void Tick() { store.Tick(now - Shard::kWaitAtMost); }

  PieceStore store;
  Time now{std::chrono::seconds(100)};
};

TEST_CASE("a fetch is answered at once or when its piece is published, in the owner's memory") {
  const auto memory = *SharedArena::Create(1 << 20);
  World world(memory);
  const PieceName sum{v1::PIECE_SUM, 4, 2}, weights{v1::PIECE_WEIGHTS, 4, 2};
  PeerReply early, late, other;
  world.Fetch(early, sum);
  world.Fetch(other, weights);
  CHECK(world.store.Prepare(sum).size() == 8);
  CHECK_FALSE(early.answered());
  world.Publish(sum, 5, 30);
  CHECK(early.values() == std::vector<float>(8, 5));
  CHECK(early.reading().header.examples() == 30);
  CHECK(early.reading().header.block() == 2);
  CHECK(early.reading().header.version() == 4);
  CHECK_FALSE(other.answered());
  world.Fetch(late, sum);
  CHECK(late.reading().values.span().data() == early.reading().values.span().data());
  CHECK(memory->Contains(late.reading().values.span().data()));
  world.Publish(weights, 6);
  CHECK(other.values() == std::vector<float>(8, 6));
  CHECK(world.store.waiting() == 0);
}

TEST_CASE("a piece that is published again keeps its values for those who read the earlier ones") {
  World world;
  const PieceName sum{v1::PIECE_SUM, 0, 0};
  world.Publish(sum, 5, 1);
  PeerReply before, between, after;
  world.Fetch(before, sum);
  std::span<float> next = world.store.Prepare(sum);
  std::fill(next.begin(), next.end(), 6.0f);
  world.Fetch(between, sum);
  world.store.Publish(sum, 2, 0);
  world.Fetch(after, sum);
  CHECK(before.values() == std::vector<float>(16, 5));
  CHECK(between.values() == std::vector<float>(16, 5));
  CHECK(after.values() == std::vector<float>(16, 6));
  CHECK(after.reading().header.examples() == 2);
  // What was not prepared is not published.
  PeerReply unprepared;
  world.store.Publish({v1::PIECE_SUM, 1, 0}, 1, 0);
  world.Fetch(unprepared, {v1::PIECE_SUM, 1, 0});
  CHECK_FALSE(unprepared.answered());
}

TEST_CASE("a fetch that waits for long is told what is missing") {
  World world;
  const PieceName sum{v1::PIECE_SUM, 12, 1};
  PeerReply short_wait, long_wait;
  const auto patient = std::make_shared<FakeWaitingSender>();
  world.Fetch(short_wait, sum);
  world.Fetch(long_wait, sum, {patient, 9});
  world.now += Shard::kWaitAtMost - std::chrono::milliseconds(1);
  world.Tick();
  CHECK_FALSE(short_wait.answered());
  world.now += std::chrono::milliseconds(1);
  world.Tick();
  const char kMissing[] = "worker 3 has not published its sum of block 1 at clock 12 yet";
  CHECK(short_wait.refusal(absl::StatusCode::kUnavailable) == kMissing);
  CHECK_FALSE(long_wait.answered());
  CHECK(patient->told == FakeWaitingSender::Told{{9, kMissing}});
  world.Tick();
  CHECK(patient->told.size() == 1);
  world.now += Shard::kWaitAtMost;
  world.Tick();
  CHECK(patient->told.size() == 2);
  world.Publish(sum, 5);
  CHECK(long_wait.values().size() == 16);
  // A sender that has gone is not kept.
  PeerReply gone;
  world.Fetch(gone, {v1::PIECE_WEIGHTS, 13, 1}, {patient, 10});
  patient->has_gone = true;
  world.now += Shard::kWaitAtMost;
  world.Tick();
  CHECK_THAT(gone.refusal(absl::StatusCode::kUnavailable),
             Contains("its weights of block 1 at clock 13"));
  CHECK(world.store.waiting() == 0);
}

TEST_CASE("what is not kept any more is out of range, also for those who wait") {
  World world;
  for (const uint64_t clock : {4u, 5u}) world.Publish({v1::PIECE_SUM, clock, 0}, 1);
  PeerReply waits, old, kept, prepared;
  world.Fetch(waits, {v1::PIECE_SUM, 4, 1});
  world.store.Prepare({v1::PIECE_SUM, 4, 2});
  world.store.KeepFrom(5);
  CHECK_THAT(waits.refusal(absl::StatusCode::kOutOfRange),
             Contains("worker 3 does not keep its sum of block 1 at clock 4 any more; it keeps "
                      "clock 5 and later ones"));
  world.Fetch(old, {v1::PIECE_SUM, 4, 0});
  CHECK_THAT(old.refusal(absl::StatusCode::kOutOfRange), Contains("block 0 at clock 4"));
  world.Fetch(kept, {v1::PIECE_SUM, 5, 0});
  CHECK(kept.values().size() == 16);
  world.store.Publish({v1::PIECE_SUM, 4, 2}, 1, 0);
  world.Publish({v1::PIECE_SUM, 4, 2}, 1);
  world.Fetch(prepared, {v1::PIECE_SUM, 4, 2});
  prepared.refusal(absl::StatusCode::kOutOfRange);
  CHECK(world.store.waiting() == 0);
  // It does not come back.
  world.store.KeepFrom(3);
  PeerReply still;
  world.Fetch(still, {v1::PIECE_SUM, 4, 0});
  still.refusal(absl::StatusCode::kOutOfRange);
}

TEST_CASE("a worker that forgets nothing keeps a bounded number of clocks") {
  World world;
  for (uint64_t clock = 0; clock < 2 * PieceStore::kClocksKept; ++clock) {
    world.Publish({v1::PIECE_SUM, clock, 0}, 1);
  }
  PeerReply first, before;
  world.Fetch(first, {v1::PIECE_SUM, PieceStore::kClocksKept, 0});
  world.Fetch(before, {v1::PIECE_SUM, PieceStore::kClocksKept - 1, 0});
  CHECK(first.values().size() == 16);
  before.refusal(absl::StatusCode::kOutOfRange);
}

TEST_CASE("fetches of another registration are refused, and those that wait for it, too") {
  PieceStore unopened(kAsked, [] { return nullptr; });
  PeerReply too_early;
  CHECK(unopened.Prepare({}).empty());
  unopened.Publish({}, 1, 0);
  unopened.Fetch(HeaderOf(1, 0, 0), v1::PIECE_SUM, {}, too_early.Done());
  CHECK(too_early.refusal(absl::StatusCode::kUnavailable) == "worker 3 has not registered yet");

  World world;
  world.Publish({v1::PIECE_SUM, 0, 0}, 1);
  PeerReply waits, same, other_job, older, newer, impossible, forgotten;
  world.Fetch(waits, {v1::PIECE_SUM, 1, 0});
  // A registration that is repeated forgets the pieces, and the fetches go on waiting.
  world.store.Open(kPeersJob, 0, kPeersLayout);
  CHECK_FALSE(waits.answered());
  world.Fetch(same, {v1::PIECE_SUM, 0, 0});
  CHECK_FALSE(same.answered());
  world.store.Open(kPeersJob, 2, kPeersLayout);
  CHECK_THAT(waits.refusal(absl::StatusCode::kFailedPrecondition),
             Contains("header.generation: is 0") && Contains("now at generation 2"));
  const auto fetch = [&](PeerReply& reply, const v1::ExchangeHeader& header) {
    world.store.Fetch(header, v1::PIECE_SUM, world.now, reply.Done());
  };
  v1::ExchangeHeader header = HeaderOf(1, 0, 0, 1, 2);
  header.set_job(8);
  fetch(other_job, header);
  CHECK_THAT(other_job.refusal(absl::StatusCode::kFailedPrecondition), Contains("header.job: 8"));
  fetch(older, HeaderOf(1, 0, 0, 1, 1));
  older.refusal(absl::StatusCode::kFailedPrecondition);
  fetch(newer, HeaderOf(1, 0, 0, 1, 3));
  CHECK_THAT(newer.refusal(absl::StatusCode::kUnavailable),
             Contains("worker 3 is at generation 2") && Contains("generation 3 yet"));
  fetch(impossible, HeaderOf(1, 0, 0, 1, std::numeric_limits<uint64_t>::max()));
  impossible.refusal(absl::StatusCode::kInvalidArgument);
}

TEST_CASE("impossible fetches are refused, and impossible pieces are no piece") {
  World world;
  PeerReply block, piece;
  world.Fetch(block, {v1::PIECE_SUM, 0, 3});
  CHECK_THAT(block.refusal(absl::StatusCode::kInvalidArgument),
             Contains("worker 1: header.block: 3 does not exist: the model has 3 blocks"));
  world.Fetch(piece, {static_cast<v1::Piece>(9), 0, 0});
  CHECK_THAT(piece.refusal(absl::StatusCode::kInvalidArgument), Contains("piece: 9"));
  CHECK(world.store.Prepare({v1::PIECE_SUM, 0, 3}).empty());
  world.store.Publish({v1::PIECE_SUM, 0, 3}, 1, 0);
  PeerReply last;
  world.Fetch(last, {v1::PIECE_SUM, std::numeric_limits<uint64_t>::max(), 0});
  world.store.KeepFrom(std::numeric_limits<uint64_t>::max());
  CHECK_FALSE(last.answered());
}

TEST_CASE("at the end everybody who waits is answered") {
  World world;
  PeerReply waits, late;
  world.Fetch(waits, {v1::PIECE_SUM, 0, 0});
  world.store.Close();
  CHECK_THAT(waits.refusal(absl::StatusCode::kUnavailable), Contains("worker 3 ends"));
  world.Publish({v1::PIECE_SUM, 0, 0}, 1);
  world.Fetch(late, {v1::PIECE_SUM, 0, 0});
  late.refusal(absl::StatusCode::kUnavailable);
}

TEST_CASE("threads publish and fetch at the same time, and every fetch gets its piece") {
  World world;
  constexpr uint64_t kClocks = 200;
  // By clock: the value that the fetch got. Written by either thread.
  std::vector<float> got(kClocks, -1);
  std::thread fetches([&] {
    for (uint64_t clock = 0; clock < kClocks; ++clock) {
      world.store.Fetch(HeaderOf(1, clock, 0), v1::PIECE_SUM, world.now,
                        [&got, clock](const absl::StatusOr<BlockReading>& reading) {
                          if (reading.ok()) got[clock] = reading->values.span()[0];
                        });
      // The store keeps a few clocks only, so neither thread may be far ahead.
      while (world.store.waiting() > 4) std::this_thread::yield();
    }
  });
  for (uint64_t clock = 0; clock < kClocks; ++clock) {
    while (world.store.waiting() == 0 && clock + 8 < kClocks) std::this_thread::yield();
    world.Publish({v1::PIECE_SUM, clock, 0}, static_cast<float>(clock));
  }
  fetches.join();
  for (uint64_t clock = 0; clock < kClocks; ++clock) {
    CHECK(got[clock] == static_cast<float>(clock));
  }
}

}  // namespace
}  // namespace leeway::piece_store
