// Stochastic gradient descent with heavy-ball momentum (Polyak 1964) or Nesterov's (Sutskever,
// Martens, Dahl, Hinton 2013). As in PyTorch, the momentum does not include the learning rate:
//   g = gradient + weight_decay x;  v = momentum v + g;  x -= rate (nesterov ? g + momentum v : v)
#include "common/update/formula.h"
#include "common/update/loop.h"
#include "common/update/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {
namespace {

class PlainSgd : public UpdateRule {
 public:
  explicit PlainSgd(float weight_decay) : weight_decay_(weight_decay) {}

  bool Apply(const UpdateStep& step, const UpdateTile& tile) const override {
    const float rate = step.learning_rate, decay = step.Decay(weight_decay_);
    const float* x = tile.weights_in;
    const float* gradient = tile.gradient;
    float* x_out = tile.weights_out;
    LargestMagnitude largest;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < tile.count; ++i) {
      const float y = x[i] - rate * (gradient[i] + decay * x[i]);
      x_out[i] = y;
      largest.See(y);
    }
    return largest.finite();
  }

  UpdateFormula formula(const UpdateStep& step) const override {
    return {.kind = UpdateFormula::Kind::kSgd,
            .rate = step.learning_rate,
            .decay = step.Decay(weight_decay_)};
  }

 private:
  const float weight_decay_;
};

template <bool kNesterov>
class MomentumSgd : public UpdateRule {
 public:
  MomentumSgd(float momentum, float weight_decay)
      : momentum_(momentum), weight_decay_(weight_decay) {}

  std::vector<std::string_view> slots() const override { return {"momentum"}; }

  bool Apply(const UpdateStep& step, const UpdateTile& tile) const override {
    const float rate = step.learning_rate, momentum = momentum_, decay = step.Decay(weight_decay_);
    const float* x = tile.weights_in;
    const float* gradient = tile.gradient;
    const float* v = tile.slots_in[0];
    float* x_out = tile.weights_out;
    float* v_out = tile.slots_out[0];
    LargestMagnitude largest;
    LEEWAY_INDEPENDENT_ITERATIONS
    for (size_t i = 0; i < tile.count; ++i) {
      const float g = gradient[i] + decay * x[i];
      const float velocity = momentum * v[i] + g;
      const float y = x[i] - rate * (kNesterov ? g + momentum * velocity : velocity);
      v_out[i] = velocity;
      x_out[i] = y;
      // If `velocity` is not finite, y is not finite either, so a check of y covers both.
      largest.See(y);
    }
    return largest.finite();
  }

  UpdateFormula formula(const UpdateStep& step) const override {
    using Kind = UpdateFormula::Kind;
    return {.kind = kNesterov ? Kind::kNesterov : Kind::kMomentum,
            .rate = step.learning_rate,
            .decay = step.Decay(weight_decay_),
            .momentum = momentum_};
  }

 private:
  const float momentum_;
  const float weight_decay_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeSgdRule(const v1::Sgd& options) {
  const auto momentum = static_cast<float>(options.momentum());
  const auto decay = static_cast<float>(options.weight_decay());
  if (momentum == 0) return std::make_unique<PlainSgd>(decay);
  if (options.nesterov()) return std::make_unique<MomentumSgd<true>>(momentum, decay);
  return std::make_unique<MomentumSgd<false>>(momentum, decay);
}

}  // namespace leeway
