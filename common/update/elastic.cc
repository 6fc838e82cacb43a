#include "common/update/loop.h"
#include "common/update/rule.h"

namespace leeway {
namespace {

class Elastic : public UpdateRule {
 public:
  explicit Elastic(float alpha) : alpha_(alpha) {}

  bool Apply(const UpdateStep&, const UpdateTile& tile) const override {
    const float alpha = alpha_;
    const float *x = tile.weights_in, *difference = tile.gradient;
    float* x_out = tile.weights_out;
    LargestMagnitude largest;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < tile.count; ++i) {
      const float y = x[i] + alpha * difference[i];
      x_out[i] = y;
      largest.See(y);
    }
    return largest.finite();
  }

 private:
  const float alpha_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeElasticRule(double alpha) {
  return std::make_unique<Elastic>(static_cast<float>(alpha));
}

}  // namespace leeway
