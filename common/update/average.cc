#include "common/update/loop.h"
#include "common/update/rule.h"

namespace leeway {
namespace {

class Average : public UpdateRule {
 public:
  void Apply(const UpdateStep&, const UpdateTile& tile) const override {
    const float *x = tile.weights_in, *lost = tile.gradient;
    float* x_out = tile.weights_out;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < tile.count; ++i) x_out[i] = x[i] - lost[i];
  }
};

}  // namespace

std::unique_ptr<UpdateRule> MakeAverageRule() { return std::make_unique<Average>(); }

}  // namespace leeway
