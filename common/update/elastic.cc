#include "common/update/loop.h"
#include "common/update/rule.h"

namespace leeway {
namespace {

class Elastic : public UpdateRule {
 public:
  explicit Elastic(float alpha) : alpha_(alpha) {}

  void Apply(const UpdateStep&, const UpdateTile& tile) const override {
    const float alpha = alpha_;
    const float *x = tile.weights_in, *difference = tile.gradient;
    float* x_out = tile.weights_out;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < tile.count; ++i) x_out[i] = x[i] + alpha * difference[i];
  }

 private:
  const float alpha_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeElasticRule(double alpha) {
  return std::make_unique<Elastic>(static_cast<float>(alpha));
}

}  // namespace leeway
