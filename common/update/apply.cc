#include "common/update/apply.h"

#include <algorithm>
#include <vector>

#include "common/update/combine.h"

namespace leeway {
namespace {

// Applies `rule` to elements [begin, end) of the block.
void ApplyRange(const BlockUpdate& update, const UpdateRule& rule, Combiner& combiner, size_t begin,
                size_t end) {
  const size_t slots = rule.slots().size();
  std::vector<const float*> slots_in(slots);
  std::vector<float*> slots_out(slots);
  for (size_t offset = begin; offset < end; offset += Combiner::kMaxTile) {
    const size_t count = std::min(Combiner::kMaxTile, end - offset);
    for (size_t slot = 0; slot < slots; ++slot) {
      slots_in[slot] = update.slots_in[slot] + offset;
      slots_out[slot] = update.slots_out[slot] + offset;
    }
    rule.Apply(update.step, {.count = count,
                             .weights_in = update.weights_in + offset,
                             .weights_out = update.weights_out + offset,
                             .gradient = combiner.Tile(offset, count),
                             .slots_in = slots_in.data(),
                             .slots_out = slots_out.data()});
  }
}

const UpdateRule& AverageRule() {
  static const UpdateRule& rule = *MakeAverageRule().release();
  return rule;
}

}  // namespace

void ApplyUpdate(const BlockUpdate& update) {
  if (update.elastic) {
    Combiner combiner = Combiner::Differences(update.contributions, update.weights_in);
    ApplyRange(update, *update.rule, combiner, 0, update.count);
    return;
  }
  Combiner combiner(update.contributions, update.coefficients);
  ApplyRange(update, *update.rule, combiner, 0, update.trained);
  ApplyRange(update, AverageRule(), combiner, update.trained, update.count);
  for (size_t slot = 0; slot < update.slots_in.size(); ++slot) {
    const float* in = update.slots_in[slot];
    float* out = update.slots_out[slot];
    if (in != out) std::copy(in + update.trained, in + update.count, out + update.trained);
  }
}

}  // namespace leeway
