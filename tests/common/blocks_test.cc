#include "common/blocks.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/match.h"
#include "common/codec/group_codec.h"
#include "tests/catch.h"

namespace leeway::blocks {
namespace {

// Checks that every element is in exactly one block, in order, and that each server's sums are
// those of its blocks. A block is short only before a cut and at the end.
void CheckLayout(const BlockLayout& layout, uint64_t total, uint32_t servers,
                 const BlockCuts& cuts = {}) {
  REQUIRE(layout.total() == total);
  REQUIRE(layout.shards() == servers);
  std::vector<uint32_t> blocks(servers);
  std::vector<uint64_t> elements(servers);
  uint64_t end = 0;
  for (uint32_t block = 0; block < layout.blocks(); ++block) {
    const ElementRange range = layout.Range(block);
    REQUIRE(range.offset == end);
    REQUIRE(range.count > 0);
    REQUIRE(range.count <= layout.block_elements());
    end = range.end();
    const bool before_cut = std::count(cuts.begin(), cuts.end(), end) > 0;
    if (!before_cut && end < total) REQUIRE(range.count == layout.block_elements());
    blocks[layout.ShardOf(block)] += 1;
    elements[layout.ShardOf(block)] += range.count;
  }
  REQUIRE(end == total);
  for (uint32_t server = 0; server < servers; ++server) {
    REQUIRE(layout.BlocksOn(server) == blocks[server]);
    REQUIRE(layout.ElementsOn(server) == elements[server]);
  }
  REQUIRE(std::accumulate(blocks.begin(), blocks.end(), 0u) == layout.blocks());
}

TEST_CASE("every element is in exactly one block, whatever total, servers and block size") {
  for (uint64_t total = 1; total < 200; ++total) {
    for (uint32_t servers : {1u, 2u, 3u, 5u, 16u, 300u}) {
      for (uint64_t bytes : {4u, 64u, 100u, 256u, 1u << 20}) {
        CAPTURE(total, servers, bytes);
        const BlockLayout layout = BlockLayout::ForModel(total, servers, bytes);
        CheckLayout(layout, total, servers);
        REQUIRE(layout.block_elements() % 16 == 0);
        REQUIRE(layout.block_elements() * sizeof(float) <= std::max<uint64_t>(bytes, 64));
      }
    }
  }
}

TEST_CASE("blocks begin at cuts, and every element is in one of them") {
  for (uint64_t total : {40u, 100u, 1000u}) {
    for (uint32_t servers : {1u, 2u, 5u}) {
      for (const BlockCuts& cuts :
           std::vector<BlockCuts>{{1}, {16}, {17, 18}, {5, 32, 39}, {total - 1}}) {
        const BlockLayout layout = BlockLayout::ForModel(total, servers, 64, cuts);
        CAPTURE(total, servers, cuts.front(), cuts.size());
        CheckLayout(layout, total, servers, cuts);
        std::vector<uint64_t> begins;
        for (uint32_t block = 0; block < layout.blocks(); ++block) {
          const ElementRange range = layout.Range(block);
          begins.push_back(range.offset);
          CHECK(layout.BlockOf(range.offset) == block);
          CHECK(layout.BlockOf(range.end() - 1) == block);
        }
        for (const uint64_t cut : cuts) {
          CHECK(std::count(begins.begin(), begins.end(), cut) == 1);
        }
      }
    }
  }
  for (const BlockCuts& cuts : std::vector<BlockCuts>{{0}, {7}, {3, 3}, {4, 2}}) {
    CHECK(absl::IsInvalidArgument(BlockLayout::FromWire(7, 2, 3, cuts).status()));
  }
  CHECK(BlockLayout::FromWire(7, 2, 3, {1, 4})->blocks() == 3);
}

// Returns where the groups begin that int8 and sign encode together.
std::vector<uint64_t> Groups(const BlockLayout& layout) {
  std::vector<uint64_t> begins;
  for (uint32_t block = 0; block < layout.blocks(); ++block) {
    const ElementRange range = layout.Range(block);
    for (uint64_t i = range.offset; i < range.end(); i += kGroup) begins.push_back(i);
  }
  return begins;
}

TEST_CASE("the groups of a codec are the same on any number of servers") {
  for (const uint64_t total : {10u, 300u, 1000u, 12'345u, 101'770u}) {
    for (const uint64_t bytes : {64u, 100u, 640u, 1024u, 5000u, 1u << 20}) {
      const auto one = Groups(BlockLayout::ForModel(total, 1, bytes));
      for (const uint32_t servers : {2u, 3u, 7u}) {
        CAPTURE(total, bytes, servers);
        CHECK(Groups(BlockLayout::ForModel(total, servers, bytes)) == one);
      }
      if (bytes >= 1024) CHECK(one == Groups(BlockLayout::ForModel(total, 1, 1 << 26)));
    }
  }
}

TEST_CASE("a small model is cut finer, so that every server has some") {
  const BlockLayout layout = BlockLayout::ForModel(10'000, 3, 1 << 20);
  CheckLayout(layout, 10'000, 3);
  for (uint32_t server = 0; server < 3; ++server) REQUIRE(layout.BlocksOn(server) == 1);
}

TEST_CASE("a server without a block is legal") {
  // There are three servers, but only two groups.
  CHECK(BlockLayout::ForModel(300, 3, 1 << 20).ShardsWithBlocks() == 2);
  const BlockLayout layout = BlockLayout::ForModel(10, 4, 1 << 20);
  REQUIRE(layout.blocks() == 1);
  REQUIRE(layout.BlocksOn(3) == 0);
  REQUIRE(layout.ElementsOn(3) == 0);
}

TEST_CASE("blocks of a large model stay within the size asked for and are spread evenly") {
  const BlockLayout layout = BlockLayout::ForModel(100'000'007, 7, 1 << 20);
  CheckLayout(layout, 100'000'007, 7);
  REQUIRE(layout.block_elements() == (1 << 20) / 4);
  for (uint32_t server = 1; server < 7; ++server) {
    REQUIRE(layout.BlocksOn(0) - layout.BlocksOn(server) <= 1);
  }
}

TEST_CASE("a layout from a peer equals the one it was made from, and nonsense is refused") {
  const BlockLayout mine = BlockLayout::ForModel(12345, 3, 4096);
  const auto theirs = BlockLayout::FromWire(12345, 3, mine.block_elements());
  REQUIRE(theirs.ok());
  CheckLayout(*theirs, 12345, 3);
  REQUIRE(theirs->blocks() == mine.blocks());

  REQUIRE(BlockLayout::FromWire(7, 2, 3).ok());
  CheckLayout(*BlockLayout::FromWire(7, 2, 3), 7, 2);
  REQUIRE(absl::IsInvalidArgument(BlockLayout::FromWire(0, 1, 1).status()));
  REQUIRE(absl::IsInvalidArgument(BlockLayout::FromWire(1, 0, 1).status()));
  REQUIRE(absl::IsInvalidArgument(BlockLayout::FromWire(1, 1, 0).status()));
  REQUIRE(absl::IsInvalidArgument(BlockLayout::FromWire(uint64_t{1} << 32, 1, 1).status()));
  REQUIRE(BlockLayout::FromWire((uint64_t{1} << 32) - 1, 1, 1).ok());
  REQUIRE(BlockLayout::FromWire(7, 1, uint64_t{1} << 24).ok());
  // The bytes of a block overflow to 0 in 64 bits.
  const absl::Status huge = BlockLayout::FromWire(7, 1, uint64_t{1} << 62).status();
  REQUIRE(absl::IsInvalidArgument(huge));
  REQUIRE(absl::StrContains(huge.message(), "block_elements 4611686018427387904"));
}

}  // namespace
}  // namespace leeway::blocks
