// AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2): the step of Adam from the
// gradient without weight decay, and separate from it the decay of the weights: x = (1 - rate
// weight_decay) x - Adam's step
#include "common/update/adam_moments.h"
#include "common/update/formula.h"
#include "common/update/loop.h"
#include "common/update/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {
namespace {

class AdamW : public UpdateRule {
 public:
  explicit AdamW(const v1::AdamW& options)
      : beta1_(options.beta1()),
        beta2_(options.beta2()),
        epsilon_(options.epsilon()),
        weight_decay_(options.weight_decay()) {}

  std::vector<std::string_view> slots() const override { return {"m", "v"}; }
  bool uses_number() const override { return true; }

  void Prepare(UpdateStep& step) const override { AdamFactors::Prepare(beta1_, beta2_, step); }

  bool Apply(const UpdateStep& step, const UpdateTile& tile) const override {
    const AdamFactors factors(beta1_, beta2_, epsilon_, step);
    const float kept = KeptShare(step, weight_decay_);
    const float *x = tile.weights_in, *gradient = tile.gradient;
    const float *m = tile.slots_in[0], *v = tile.slots_in[1];
    float *x_out = tile.weights_out, *m_out = tile.slots_out[0], *v_out = tile.slots_out[1];
    LargestMagnitude largest;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < tile.count; ++i) {
      const float first = factors.First(m[i], gradient[i]);
      const float second = factors.Second(v[i], gradient[i]);
      const float y = kept * x[i] - factors.Move(first, second);
      m_out[i] = first;
      v_out[i] = second;
      x_out[i] = y;
      // If `first` is not finite, y is not finite either, so a check of y covers both.
      largest.See(second);
      largest.See(y);
    }
    return largest.finite();
  }

  UpdateFormula formula(const UpdateStep& step) const override {
    return {.kind = UpdateFormula::Kind::kAdamW,
            .kept = KeptShare(step, weight_decay_),
            .adam = AdamFactors(beta1_, beta2_, epsilon_, step)};
  }

 private:
  const double beta1_;
  const double beta2_;
  const double epsilon_;
  const double weight_decay_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeAdamWRule(const v1::AdamW& options) {
  return std::make_unique<AdamW>(options);
}

}  // namespace leeway
