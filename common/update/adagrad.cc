// Adagrad (Duchi, Hazan, Singer 2011, section 1.3, diagonal form):
//   g = gradient + weight_decay x;  s += g^2;  x -= rate g / (sqrt(s) + epsilon)
#include <cmath>

#include "common/update/formula.h"
#include "common/update/loop.h"
#include "common/update/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {
namespace {

class Adagrad : public UpdateRule {
 public:
  explicit Adagrad(const v1::Adagrad& options)
      : epsilon_(static_cast<float>(options.epsilon())),
        weight_decay_(static_cast<float>(options.weight_decay())),
        initial_sum_(static_cast<float>(options.initial_sum())) {}

  std::vector<std::string_view> slots() const override { return {"sum_of_squares"}; }
  float slot_start(size_t) const override { return initial_sum_; }

  bool Apply(const UpdateStep& step, const UpdateTile& tile) const override {
    const float rate = step.learning_rate, epsilon = epsilon_, decay = step.Decay(weight_decay_);
    const float* x = tile.weights_in;
    const float* gradient = tile.gradient;
    const float* s = tile.slots_in[0];
    float* x_out = tile.weights_out;
    float* s_out = tile.slots_out[0];
    LargestMagnitude largest;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < tile.count; ++i) {
      const float g = gradient[i] + decay * x[i];
      const float sum = s[i] + g * g;
      const float y = x[i] - rate * g / (std::sqrt(sum) + epsilon);
      s_out[i] = sum;
      x_out[i] = y;
      largest.See(sum);
      largest.See(y);
    }
    return largest.finite();
  }

  UpdateFormula formula(const UpdateStep& step) const override {
    return {.kind = UpdateFormula::Kind::kAdagrad,
            .rate = step.learning_rate,
            .decay = step.Decay(weight_decay_),
            .epsilon = epsilon_};
  }

 private:
  const float epsilon_;
  const float weight_decay_;
  const float initial_sum_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeAdagradRule(const v1::Adagrad& options) {
  return std::make_unique<Adagrad>(options);
}

}  // namespace leeway
