// Adam (Kingma and Ba 2015, arXiv:1412.6980, algorithm 1), with weight decay as an L2 term of the
// gradient:
//   g = gradient + weight_decay x;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//   x -= rate m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon)
// or without bias correction, and with another initial v, as in FedAdam (Reddi et al. 2021,
// algorithm 2):
//   x -= rate m / (sqrt(v) + epsilon)
#include "common/update/adam_moments.h"
#include "common/update/formula.h"
#include "common/update/loop.h"
#include "common/update/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {
namespace {

class Adam : public UpdateRule {
 public:
  explicit Adam(const v1::Adam& options)
      : beta1_(options.beta1()),
        beta2_(options.beta2()),
        epsilon_(options.epsilon()),
        weight_decay_(static_cast<float>(options.weight_decay())),
        corrects_(options.bias_correction()),
        initial_v_(static_cast<float>(options.initial_v())) {}

  std::vector<std::string_view> slots() const override { return {"m", "v"}; }

  float slot_start(size_t slot) const override { return slot == 1 ? initial_v_ : 0; }
  bool uses_number() const override { return corrects_; }

  void Prepare(UpdateStep& step) const override {
    corrects_ ? AdamFactors::Prepare(beta1_, beta2_, step) : AdamFactors::PrepareUncorrected(step);
  }

  bool Apply(const UpdateStep& given, const UpdateTile& tile) const override {
    UpdateStep step = given;
    if (!corrects_) AdamFactors::PrepareUncorrected(step);
    const AdamFactors factors(beta1_, beta2_, epsilon_, step);
    const float decay = step.Decay(weight_decay_);
    const float *x = tile.weights_in, *gradient = tile.gradient;
    const float *m = tile.slots_in[0], *v = tile.slots_in[1];
    float *x_out = tile.weights_out, *m_out = tile.slots_out[0], *v_out = tile.slots_out[1];
    LargestMagnitude largest;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < tile.count; ++i) {
      const float g = gradient[i] + decay * x[i];
      const float first = factors.First(m[i], g);
      const float second = factors.Second(v[i], g);
      const float y = x[i] - factors.Move(first, second);
      m_out[i] = first;
      v_out[i] = second;
      x_out[i] = y;
      // If `first` is not finite, y is not finite either, so a check of y covers both.
      largest.See(second);
      largest.See(y);
    }
    return largest.finite();
  }

  UpdateFormula formula(const UpdateStep& given) const override {
    UpdateStep step = given;
    if (!corrects_) AdamFactors::PrepareUncorrected(step);
    return {.kind = UpdateFormula::Kind::kAdam,
            .decay = step.Decay(weight_decay_),
            .adam = AdamFactors(beta1_, beta2_, epsilon_, step)};
  }

 private:
  const double beta1_;
  const double beta2_;
  const double epsilon_;
  const float weight_decay_;
  const bool corrects_;
  const float initial_v_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeAdamRule(const v1::Adam& options) {
  return std::make_unique<Adam>(options);
}

}  // namespace leeway
