#include "common/update/loop.h"
#include "common/update/rule.h"

namespace leeway {
namespace {

class AverageRule : public UpdateRule {
 public:
  bool Apply(const UpdateStep&, const UpdateTile& tile) const override {
    const float *x = tile.weights_in, *move = tile.gradient;
    float* x_out = tile.weights_out;
    LargestMagnitude largest;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < tile.count; ++i) {
      const float y = x[i] + move[i];
      x_out[i] = y;
      largest.See(y);
    }
    return largest.finite();
  }
};

class ReplaceRule : public UpdateRule {
 public:
  bool Apply(const UpdateStep&, const UpdateTile& tile) const override {
    const float* x = tile.gradient;
    float* x_out = tile.weights_out;
    LargestMagnitude largest;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < tile.count; ++i) {
      x_out[i] = x[i];
      largest.See(x[i]);
    }
    return largest.finite();
  }
};

}  // namespace

std::unique_ptr<UpdateRule> MakeAverageRule() { return std::make_unique<AverageRule>(); }
std::unique_ptr<UpdateRule> MakeReplaceRule() { return std::make_unique<ReplaceRule>(); }

}  // namespace leeway
