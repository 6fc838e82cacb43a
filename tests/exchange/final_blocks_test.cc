#include "exchange/final_blocks.h"

#include "tests/catch.h"

namespace leeway::final_blocks {
namespace {

std::vector<std::pair<uint32_t, uint32_t>> Add(FinalBlocks& final, std::vector<ElementRange> part) {
  std::vector<std::pair<uint32_t, uint32_t>> blocks;
  for (const BlockRange& range : final.Add(part)) blocks.push_back({range.first, range.count});
  return blocks;
}
using Blocks = std::vector<std::pair<uint32_t, uint32_t>>;

TEST_CASE("a block is complete when the last of its elements is, and is named once") {
  // 4 4 4 4 4 1
  const BlockLayout layout = *BlockLayout::FromWire(21, 2, 4);
  FinalBlocks final(layout);
  for (int clock = 0; clock < 2; ++clock) {
    CHECK(final.missing() == 6);
    CHECK(Add(final, {{14, 7}}) == Blocks{{4, 2}});
    CHECK(Add(final, {{7, 2}}).empty());
    CHECK(Add(final, {}).empty());
    // Ends block 3 from below, all of block 2.
    CHECK(Add(final, {{9, 5}}) == Blocks{{2, 2}});
    CHECK(final.missing() == 2);
    CHECK(Add(final, {{4, 3}, {0, 1}}) == Blocks{{1, 1}});
    CHECK(Add(final, {{1, 3}}) == Blocks{{0, 1}});
    CHECK(final.missing() == 0);
    final.Reset();
  }
}

TEST_CASE("ranges that are not neighbours complete blocks apart") {
  const BlockLayout layout = *BlockLayout::FromWire(16, 1, 4);
  FinalBlocks final(layout);
  CHECK(Add(final, {{12, 4}, {0, 4}, {4, 2}}) == Blocks{{0, 1}, {3, 1}});
  CHECK(Add(final, {{8, 4}, {6, 2}}) == Blocks{{1, 2}});
}

TEST_CASE("blocks of elements are those that hold any of them") {
  const BlockLayout layout = *BlockLayout::FromWire(21, 2, 4);
  CHECK(BlocksOf(layout, {3, 2}).first == 0);
  CHECK(BlocksOf(layout, {3, 2}).count == 2);
  CHECK(BlocksOf(layout, {4, 4}).first == 1);
  CHECK(BlocksOf(layout, {4, 4}).count == 1);
  CHECK(BlocksOf(layout, {20, 1}).first == 5);
  CHECK(BlocksOf(layout, {8, 0}).count == 0);
}

}  // namespace
}  // namespace leeway::final_blocks
