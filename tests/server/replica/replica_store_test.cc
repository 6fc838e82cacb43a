#include "server/replica/replica_store.h"

#include <numeric>
#include <vector>

#include "tests/catch.h"

namespace leeway::replica_store {
namespace {

using Catch::Matchers::Contains;

// Four blocks of three values, the last of two; shard 1 has blocks 1 and 3.
ReplicaStore::Options Options(size_t slots = 1) {
  return {*BlockLayout::FromWire(11, 2, 3), 1, 5, slots, true, nullptr};
}

struct State {
  std::vector<float> values;
  FloatPayload payload() const { return FloatPayload::Of(values); }
};
State Filled(size_t floats, float first) {
  State state;
  state.values.resize(floats);
  std::iota(state.values.begin(), state.values.end(), first);
  return state;
}

v1::ExchangeHeader Header(uint32_t block) {
  v1::ExchangeHeader header;
  header.set_block(block);
  return header;
}
v1::ReplicatedBlock Replicated(uint64_t version, uint64_t since_epoch = 5) {
  v1::ReplicatedBlock replicated;
  replicated.set_since_epoch(since_epoch);
  replicated.set_version(version);
  replicated.add_clocks(version);
  replicated.add_clocks(version + 1);
  return replicated;
}

std::vector<float> Of(const SharedFloats& values, size_t count) {
  return {values.span().begin(), values.span().begin() + static_cast<long>(count)};
}

TEST_CASE("what was taken is what is taken over: weights, slots, clocks, and the version before") {
  ReplicaStore store(Options());
  for (const uint64_t version : {7, 8}) {
    const float base = 100.0f * static_cast<float>(version);
    REQUIRE(store.Take(Header(1), Replicated(version), Filled(6, base).payload()).ok());
    REQUIRE(store.Take(Header(3), Replicated(version), Filled(4, base + 50).payload()).ok());
  }
  const auto blocks = store.TakeOver();
  REQUIRE(blocks.ok());
  REQUIRE(blocks->size() == 2);
  const ReplicaStore::Block& first = (*blocks)[0];
  CHECK(first.block == 1);
  CHECK(first.progress.version == 8);
  CHECK(first.progress.clocks == std::vector<uint64_t>{8, 9});
  CHECK(Of(first.values.weights, 3) == std::vector<float>{800, 801, 802});
  REQUIRE(first.values.slots.size() == 1);
  CHECK(Of(first.values.slots[0], 3) == std::vector<float>{803, 804, 805});
  CHECK(Of(first.previous, 3) == std::vector<float>{700, 701, 702});
  CHECK((*blocks)[1].block == 3);
  CHECK(Of((*blocks)[1].values.weights, 2) == std::vector<float>{850, 851});
}

TEST_CASE("with a shadow it is kept, and what workers had of the version before is the shadow") {
  ReplicaStore store(Options(0));
  for (const uint64_t version : {1, 2}) {
    const float base = 10.0f * static_cast<float>(version);
    REQUIRE(store.Take(Header(1), Replicated(version), Filled(6, base).payload()).ok());
    REQUIRE(store.Take(Header(3), Replicated(version), Filled(4, base).payload()).ok());
  }
  const auto blocks = store.TakeOver();
  REQUIRE(blocks.ok());
  CHECK(Of((*blocks)[0].values.shadow, 3) == std::vector<float>{23, 24, 25});
  CHECK(Of((*blocks)[0].previous, 3) == std::vector<float>{13, 14, 15});
}

TEST_CASE("a version that does not follow the one here leaves none before it") {
  ReplicaStore store(Options(0));
  for (const uint64_t version : {1, 3}) {
    REQUIRE(store.Take(Header(1), Replicated(version), Filled(3, 0).payload()).ok());
    REQUIRE(store.Take(Header(3), Replicated(version), Filled(2, 0).payload()).ok());
  }
  CHECK_FALSE((*store.TakeOver())[0].previous);
}

TEST_CASE("a first state brings the version before, if there is one") {
  ReplicaStore store(Options(0));
  v1::ReplicatedBlock first = Replicated(4);
  first.set_has_previous(true);
  const bool shadow = GENERATE(false, true);
  REQUIRE(store.Take(Header(1), first, Filled(shadow ? 9 : 6, 10).payload()).ok());
  REQUIRE(store.Take(Header(3), first, Filled(shadow ? 6 : 4, 10).payload()).ok());
  const auto blocks = store.TakeOver();
  REQUIRE(blocks.ok());
  const float previous = shadow ? 16 : 13;
  CHECK(Of((*blocks)[0].previous, 3) == std::vector<float>{previous, previous + 1, previous + 2});
  CHECK(static_cast<bool>((*blocks)[0].values.shadow) == shadow);
}

TEST_CASE("who does not own the shard any more is refused, and changes nothing") {
  ReplicaStore store(Options(0));
  REQUIRE(store.Take(Header(1), Replicated(4), Filled(3, 1).payload()).ok());
  REQUIRE(store.Take(Header(3), Replicated(4), Filled(2, 1).payload()).ok());
  const auto refused = [&](const absl::Status& status) {
    return absl::IsFailedPrecondition(status);
  };
  CHECK(refused(store.Take(Header(1), Replicated(9, 4), Filled(3, 7).payload())));
  CHECK(refused(store.Take(Header(1), Replicated(3), Filled(3, 7).payload())));
  CHECK(refused(store.Take(Header(0), Replicated(9), Filled(3, 7).payload())));
  CHECK(refused(store.Take(Header(99), Replicated(9), Filled(3, 7).payload())));
  const auto blocks = store.TakeOver();
  REQUIRE(blocks.ok());
  CHECK((*blocks)[0].progress.version == 4);
  const absl::Status late = store.Take(Header(1), Replicated(5), Filled(3, 7).payload());
  CHECK(refused(late));
  CHECK_THAT(std::string(late.message()), Contains("this server owns the block now"));
}

TEST_CASE("the wrong number of values is refused by name") {
  ReplicaStore store(Options());
  const absl::Status status = store.Take(Header(1), Replicated(1), Filled(7, 0).payload());
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Contains("7 values"));
}

TEST_CASE("a replica that never got a block cannot take over") {
  ReplicaStore store(Options(0));
  REQUIRE(store.Take(Header(1), Replicated(4), Filled(3, 1).payload()).ok());
  const auto blocks = store.TakeOver();
  CHECK(absl::IsFailedPrecondition(blocks.status()));
  CHECK_THAT(std::string(blocks.status().message()), Contains("never got block 3"));
}

}  // namespace
}  // namespace leeway::replica_store
