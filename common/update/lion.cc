// Lion (Chen et al. 2023, arXiv:2302.06675, algorithm 2), with weight decay separate from the
// gradient:
//   c = b1 m + (1 - b1) g;  x = (1 - rate weight_decay) x - rate sign(c);  m = b2 m + (1 - b2) g
#include "common/update/formula.h"
#include "common/update/lion_moment.h"
#include "common/update/loop.h"
#include "common/update/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {
namespace {

class Lion : public UpdateRule {
 public:
  explicit Lion(const v1::Lion& options)
      : beta1_(options.beta1()), beta2_(options.beta2()), weight_decay_(options.weight_decay()) {}

  std::vector<std::string_view> slots() const override { return {"m"}; }

  bool Apply(const UpdateStep& step, const UpdateTile& tile) const override {
    const LionFactors factors(beta1_, beta2_, step);
    const float kept = KeptShare(step, weight_decay_);
    const float *x = tile.weights_in, *gradient = tile.gradient, *m = tile.slots_in[0];
    float *x_out = tile.weights_out, *m_out = tile.slots_out[0];
    LargestMagnitude largest;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < tile.count; ++i) {
      const float y = factors.Moved(kept * x[i], m[i], gradient[i]);
      const float first = factors.First(m[i], gradient[i]);
      m_out[i] = first;
      x_out[i] = y;
      // The sign is finite even if `first` is not, so both values are checked.
      largest.See(first);
      largest.See(y);
    }
    return largest.finite();
  }

  UpdateFormula formula(const UpdateStep& step) const override {
    return {.kind = UpdateFormula::Kind::kLion,
            .kept = KeptShare(step, weight_decay_),
            .lion = LionFactors(beta1_, beta2_, step)};
  }

 private:
  const double beta1_;
  const double beta2_;
  const double weight_decay_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeLionRule(const v1::Lion& options) {
  return std::make_unique<Lion>(options);
}

}  // namespace leeway
