#include "tests/sim/values.h"

#include "tests/sim/message.h"

namespace leeway::sim {

uint64_t FirstValues(uint32_t block) { return Mix(77, block) | 1; }

uint64_t ContributionValue(uint32_t rank, uint64_t clock, uint32_t block, uint64_t read) {
  return Mix(Mix(read, rank), Mix(clock, block));
}

uint64_t ExpectedValues(const Shape& shape, uint32_t block, uint64_t clock) {
  constexpr uint64_t kClocksMax = 8;
  struct Table {
    bool made = false;
    uint64_t values[kClocksMax][kBlocksMax];
  };
  static thread_local Table tables[2][kRanksMax + 1][kBlocksMax + 1];
  Table& table = tables[shape.elastic ? 1 : 0][shape.workers][shape.blocks];
  if (!table.made) {
    table.made = true;
    for (uint32_t b = 0; b < shape.blocks; ++b) table.values[0][b] = FirstValues(b);
    for (uint64_t c = 0; c + 1 < kClocksMax; ++c) {
      uint64_t read = 0;
      for (uint32_t b = 0; !shape.elastic && b < shape.blocks; ++b) {
        read = Mix(read, table.values[c][b]);
      }
      for (uint32_t b = 0; b < shape.blocks; ++b) {
        uint64_t values = table.values[c][b];
        for (uint32_t r = 0; r < shape.workers; ++r) {
          values = Mix(values, ContributionValue(r, c, b, read));
        }
        table.values[c + 1][b] = values;
      }
    }
  }
  return clock < kClocksMax ? table.values[clock][block] : 0;
}

}  // namespace leeway::sim
