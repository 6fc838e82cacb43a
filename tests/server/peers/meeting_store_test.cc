#include "server/peers/meeting_store.h"

#include <atomic>
#include <cmath>
#include <deque>
#include <latch>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "tests/catch.h"
#include "tests/server/peers/peers_rig.h"

namespace leeway::meeting_store {
namespace {

using Catch::Contains;
using testing::HeaderOf;
using testing::kAsked;
using testing::kPeersJob;
using testing::kPeersLayout;
using testing::PeerReply;

FloatPayload Values(std::vector<float> values) {
  auto owner = std::make_shared<std::vector<float>>(std::move(values));
  return FloatPayload::Of(*owner, owner);
}

// Worker 3, with all weights at 10.
struct World {
  World() : store(kAsked, [] { return nullptr; }) { Open(0); }
  void Open(uint64_t generation) {
    store.Open(kPeersJob, generation, kPeersLayout, std::vector<float>(kPeersLayout.total(), 10));
  }
  void Meet(PeerReply& reply, const v1::ExchangeHeader& header, std::vector<float> values) {
    store.Meet(header, Values(std::move(values)), reply.Done());
  }
  float Weight(uint32_t block = 0) {
    std::vector<float> none(kPeersLayout.Range(block).count), weights(none.size());
    store.Subtract(block, none, weights);
    return weights[0];
  }

  MeetingStore store;
};

TEST_CASE("a meeting moves the block halfway and answers the block as it was") {
  World world;
  PeerReply first, second, other_block;
  world.Meet(first, HeaderOf(1, 4, 0), std::vector<float>(16, 20));
  CHECK(first.values() == std::vector<float>(16, 10));
  CHECK_FALSE(first.reading().duplicate);
  world.Meet(second, HeaderOf(2, 9, 0), std::vector<float>(16, 11));
  CHECK(second.values() == std::vector<float>(16, 15));
  CHECK(world.Weight() == 13);
  world.Meet(other_block, HeaderOf(1, 4, 2), std::vector<float>(8, 4));
  CHECK(other_block.values() == std::vector<float>(8, 10));
  CHECK(world.Weight(2) == 7);
  // The earlier answer has not changed.
  CHECK(first.values() == std::vector<float>(16, 10));
}

TEST_CASE("the worker's own change counts in full between meetings") {
  World world;
  PeerReply before, after;
  world.Meet(before, HeaderOf(1, 0, 0), std::vector<float>(16, 20));
  std::vector<float> weights(16);
  world.store.Subtract(0, std::vector<float>(16, 3), weights);
  CHECK(weights == std::vector<float>(16, 12));
  world.Meet(after, HeaderOf(1, 1, 0), std::vector<float>(16, 20));
  CHECK(after.values() == std::vector<float>(16, 12));
  CHECK(world.Weight() == 16);
  // The wrong size, another block, and no registration change nothing.
  world.store.Subtract(0, std::vector<float>(15, 3), weights);
  world.store.Subtract(3, std::vector<float>(16, 3), weights);
  MeetingStore(kAsked, [] { return nullptr; }).Subtract(0, std::vector<float>(16, 3), weights);
  CHECK(weights == std::vector<float>(16, 12));
  CHECK(world.Weight() == 16);
}

TEST_CASE("a repeated meeting gets its answer again, whatever came between, until it is taken") {
  World world;
  const v1::ExchangeHeader header = HeaderOf(1, 4, 0);
  PeerReply first, other, again, taken, twice, late, older, next;
  world.Meet(first, header, std::vector<float>(16, 20));
  world.Meet(other, HeaderOf(2, 0, 0), std::vector<float>(16, 21));
  world.Meet(again, header, std::vector<float>(16, 20));
  CHECK(again.reading().duplicate);
  CHECK(again.values() == std::vector<float>(16, 10));
  CHECK(world.Weight() == 18);
  world.store.Meet(header, {}, taken.Done());
  CHECK_FALSE(taken.reading().has_payload());
  CHECK_FALSE(taken.reading().duplicate);
  world.store.Meet(header, {}, twice.Done());
  CHECK(twice.reading().duplicate);
  world.Meet(late, header, std::vector<float>(16, 20));
  late.refusal(absl::StatusCode::kFailedPrecondition);
  world.Meet(older, HeaderOf(1, 3, 0), std::vector<float>(16, 20));
  CHECK_THAT(older.refusal(absl::StatusCode::kFailedPrecondition),
             Contains("worker 1 meets block 0 at clock 3, but has met it at clock 4 already"));
  CHECK(world.Weight() == 18);
  world.Meet(next, HeaderOf(1, 5, 0), std::vector<float>(16, 18));
  CHECK(next.values() == std::vector<float>(16, 18));
}

TEST_CASE("a newer life meets anew, and an older one is refused") {
  World world;
  PeerReply old, young, late, taken;
  world.Meet(old, HeaderOf(1, 4, 0, 1), std::vector<float>(16, 20));
  world.Meet(young, HeaderOf(1, 4, 0, 2), std::vector<float>(16, 15));
  CHECK(young.values() == std::vector<float>(16, 15));
  world.Meet(late, HeaderOf(1, 5, 0, 1), std::vector<float>(16, 20));
  late.refusal(absl::StatusCode::kAborted);
  world.store.Meet(HeaderOf(1, 4, 0, 1), {}, taken.Done());
  taken.refusal(absl::StatusCode::kAborted);
  CHECK(world.Weight() == 15);
}

TEST_CASE("impossible meetings name the worker, block and element, and change nothing") {
  World world;
  const auto refusal = [&](v1::ExchangeHeader header, std::vector<float> values) {
    PeerReply reply;
    world.Meet(reply, header, std::move(values));
    return reply.refusal(absl::StatusCode::kInvalidArgument);
  };
  std::vector<float> bad(16, 20);
  bad[5] = std::numeric_limits<float>::quiet_NaN();
  bad[9] = std::numeric_limits<float>::infinity();
  const v1::ExchangeHeader header = HeaderOf(1, 4, 1);
  CHECK_THAT(refusal(header, bad),
             Contains("worker 1, block 1, clock 4: payload: value 5 (element 21 of the model) is "
                      "not finite"));
  CHECK_THAT(refusal(header, std::vector<float>(15, 1)),
             Contains("payload: 60 bytes, but the block has 16 values"));
  CHECK_THAT(refusal(HeaderOf(1, 4, 3), std::vector<float>(16, 1)), Contains("header.block"));
  CHECK_THAT(refusal(HeaderOf(kAsked, 4, 1), std::vector<float>(16, 1)), Contains("header.rank"));
  v1::ExchangeHeader encoded = header;
  encoded.set_encoding(v1::ENCODING_BF16);
  CHECK_THAT(refusal(encoded, std::vector<float>(16, 1)), Contains("header.encoding"));
  v1::ExchangeHeader empty = header;
  empty.set_examples(1);
  CHECK_THAT(refusal(empty, {}), Contains("payload: 0 bytes"));
  CHECK(world.Weight(1) == 10);
  // The refused meeting can still be made.
  PeerReply good;
  world.Meet(good, header, std::vector<float>(16, 20));
  CHECK_FALSE(good.reading().duplicate);
}

TEST_CASE("a meeting whose result overflows is refused, and changes nothing") {
  World world;
  std::vector<float> weights(16);
  world.store.Subtract(0, std::vector<float>(16, -3e38f), weights);
  PeerReply reply;
  world.Meet(reply, HeaderOf(1, 4, 0), std::vector<float>(16, -3e38f));
  CHECK_THAT(reply.refusal(absl::StatusCode::kInvalidArgument),
             Contains("value 0 (element 0 of the model) is finite, but would not be in worker 3's "
                      "block"));
  CHECK(world.Weight() == weights[0]);
}

TEST_CASE("meetings belong to a registration, and the next one begins with its own weights") {
  MeetingStore unopened(kAsked, [] { return nullptr; });
  PeerReply early, before, old, again, ended;
  unopened.Meet(HeaderOf(1, 0, 0), Values(std::vector<float>(16, 1)), early.Done());
  CHECK_THAT(early.refusal(absl::StatusCode::kFailedPrecondition),
             Contains("has not registered yet; meet another worker"));
  World world;
  world.Meet(before, HeaderOf(1, 4, 0), std::vector<float>(16, 20));
  world.Open(1);
  CHECK(world.Weight() == 10);
  world.Meet(old, HeaderOf(1, 4, 0), std::vector<float>(16, 20));
  old.refusal(absl::StatusCode::kFailedPrecondition);
  world.Meet(again, HeaderOf(1, 4, 0, 1, 1), std::vector<float>(16, 20));
  CHECK_FALSE(again.reading().duplicate);
  world.store.Close();
  world.Meet(ended, HeaderOf(2, 4, 0, 1, 1), std::vector<float>(16, 20));
  ended.refusal(absl::StatusCode::kUnavailable);
}

TEST_CASE("a worker that has ended its meetings repeats answers, and meets nobody else") {
  World world;
  PeerReply before, again, late;
  world.Meet(before, HeaderOf(1, 4, 0), std::vector<float>(16, 20));
  world.store.End();
  const float last = world.Weight();
  world.Meet(again, HeaderOf(1, 4, 0), std::vector<float>(16, 20));
  CHECK(again.reading().duplicate);
  world.Meet(late, HeaderOf(2, 0, 0), std::vector<float>(16, 20));
  CHECK_THAT(late.refusal(absl::StatusCode::kFailedPrecondition), Contains("meet another worker"));
  CHECK(world.Weight() == last);
}

// A worker's side of a meeting: x moves by the opposite of what the receiver moves by.
void Move(std::vector<float>& x, const std::vector<float>& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] -= (x[i] - y[i]) * 0.5f;
}

// The weights of many workers, each a store, which meet at random. Requests and answers are lost
// and repeated, and each sender moves when it first gets its answer.
TEST_CASE("whatever is lost and repeated, meetings keep the sum of all weights") {
  constexpr uint32_t kWorkers = 5;
  const BlockLayout layout = *BlockLayout::FromWire(24, 1, 16);
  std::mt19937 draws(GENERATE(1u, 2u, 3u, 4u));
  std::uniform_real_distribution<float> weight(-5, 10);
  std::deque<MeetingStore> stores;
  double sum = 0;
  for (uint32_t rank = 0; rank < kWorkers; ++rank) {
    std::vector<float> weights(layout.total());
    for (float& each : weights) sum += each = weight(draws);
    stores.emplace_back(rank, [] { return nullptr; });
    stores.back().Open(kPeersJob, 0, layout, weights);
  }
  const auto weights_of = [&](uint32_t rank, uint32_t block) {
    std::vector<float> none(layout.Range(block).count), weights(none.size());
    stores[rank].Subtract(block, none, weights);
    return weights;
  };
  uint64_t duplicates = 0;
  for (uint64_t clock = 0; clock < 400; ++clock) {
    const uint32_t sender = draws() % kWorkers;
    const uint32_t receiver = (sender + 1 + draws() % (kWorkers - 1)) % kWorkers;
    const uint32_t block = draws() % layout.blocks();
    const std::vector<float> x = weights_of(sender, block);
    std::optional<std::vector<float>> y;
    while (!y) {
      const bool lost = draws() % 3 == 0, answer_lost = draws() % 3 == 0;
      if (lost) continue;
      PeerReply reply;
      stores[receiver].Meet(HeaderOf(sender, clock, block), Values(x), reply.Done());
      duplicates += reply.reading().duplicate ? 1 : 0;
      // Meanwhile the receiver may compute, which is not part of the sum.
      if (!answer_lost) y = reply.values();
    }
    // A late copy of the request.
    if (draws() % 4 == 0) {
      PeerReply late;
      stores[receiver].Meet(HeaderOf(sender, clock, block), Values(x), late.Done());
      CHECK(late.reading().duplicate);
    }
    std::vector<float> moved = x, change(x.size()), result(x.size());
    Move(moved, *y);
    for (size_t i = 0; i < x.size(); ++i) change[i] = x[i] - moved[i];
    stores[sender].Subtract(block, change, result);
    if (draws() % 2 == 0) {
      PeerReply taken;
      stores[receiver].Meet(HeaderOf(sender, clock, block), {}, taken.Done());
      taken.reading();
    }
  }
  CHECK(duplicates > 50);
  double after = 0, spread = 0;
  for (uint32_t rank = 0; rank < kWorkers; ++rank) {
    for (uint32_t block = 0; block < layout.blocks(); ++block) {
      for (const float each : weights_of(rank, block)) after += each;
      spread += std::abs(weights_of(rank, block)[0] - weights_of(0, block)[0]);
    }
  }
  CHECK(std::abs(after - sum) <= 1e-6 * std::abs(sum));
  // They have met: all weights are near their mean.
  CHECK(spread < 1e-3);
}

TEST_CASE("threads that change one block take turns, and no change is lost") {
  World world;
  constexpr int kTimes = 20000;
  std::latch begin(3);
  PeerReply met;
  world.Meet(met, HeaderOf(1, 0, 0), std::vector<float>(16, 20));
  REQUIRE(met.reading().header.version() == 0);
  const auto change = [&] {
    std::vector<float> weights(16);
    begin.arrive_and_wait();
    for (int i = 0; i < kTimes; ++i) {
      world.store.Subtract(0, std::vector<float>(16, -1), weights);
    }
  };
  std::atomic<int> repeated = 0;
  std::thread one(change), two(change), meets([&] {
    begin.arrive_and_wait();
    for (int i = 0; i < kTimes; ++i) {
      world.store.Meet(HeaderOf(1, 0, 0), Values(std::vector<float>(16, 20)),
                       [&](const absl::StatusOr<BlockReading>& reading) {
                         if (reading.ok() && reading->duplicate) ++repeated;
                       });
    }
  });
  one.join();
  two.join();
  meets.join();
  CHECK(repeated == kTimes);
  CHECK(world.Weight() == 15 + 2 * kTimes);
}

}  // namespace
}  // namespace leeway::meeting_store
