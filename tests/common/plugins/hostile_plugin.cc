// A plugin whose layers, losses and rules misbehave, as their option `fault` says.
#include <string>

#include "leeway/plugin.h"

namespace {

using namespace leeway::plugin;

enum Fault {
  kNone,
  kMakeThrows,
  kMakesNothing,
  kForwardThrows,
  kBackwardThrows,
  kThrowsNoException,
  kEmptyTensor,
  kHugeTensor,
  kNamelessTensor,
  kSameTensors,
  kEmptyOutput,
};

Fault FaultOf(const Options& options) { return static_cast<Fault>(options["fault"]); }

// y = w x, with one weight.
class Scale final : public Layer {
 public:
  Scale(Fault fault, const Shape& shape) : fault_(fault), shape_(shape) {}

  Shape output() const override { return fault_ == kEmptyOutput ? Shape{1, 1, 0} : shape_; }
  std::vector<Tensor> tensors() const override {
    const Tensor good{"w", {1}, TensorKind::kWeight, Start::Constant(2)};
    Tensor bad = good;
    if (fault_ == kEmptyTensor) bad.shape = {};
    if (fault_ == kHugeTensor) bad.shape = {uint64_t{1} << 40, uint64_t{1} << 40};
    if (fault_ == kNamelessTensor) bad.name = "a/b";
    return fault_ == kSameTensors ? std::vector<Tensor>{good, good} : std::vector<Tensor>{bad};
  }
  void Forward(const Pass& pass, const float* x, float* y) const override {
    if (fault_ == kForwardThrows && pass.training) throw std::runtime_error("forward is broken");
    if (fault_ == kThrowsNoException) throw 7;
    for (size_t i = 0; i < pass.batch * shape_.elements(); ++i) y[i] = pass.weights[0][0] * x[i];
  }
  void Backward(const Pass& pass, const float* x, const float* y, const float* dy,
                float* dx) const override {
    if (fault_ == kBackwardThrows) throw std::runtime_error("backward is broken");
    float sum = 0;
    for (size_t i = 0; i < pass.batch * shape_.elements(); ++i) {
      sum += dy[i] * x[i];
      if (dx != nullptr) dx[i] = pass.weights[0][0] * dy[i];
    }
    pass.gradients[0][0] = sum;
  }

 private:
  const Fault fault_;
  const Shape shape_;
};

// Minus the label's score, for classes.
class Plain final : public Loss {
 public:
  explicit Plain(Fault fault) : fault_(fault) {}
  double Compute(const Scores& s, float* gradient) const override {
    if (fault_ == kForwardThrows) throw std::runtime_error("the loss is broken");
    double sum = 0;
    for (size_t i = 0; i < s.rows * s.units; ++i) {
      const bool right = static_cast<size_t>(s.labels[i / s.units]) == i % s.units;
      if (right) sum -= s.scores[i];
      if (gradient != nullptr) gradient[i] = right ? -1.0f / static_cast<float>(s.rows) : 0;
    }
    return sum;
  }

 private:
  const Fault fault_;
};

class Rule final : public UpdateRule {
 public:
  explicit Rule(std::vector<Slot> slots) : slots_(std::move(slots)) {}
  std::vector<Slot> slots() const override { return slots_; }
  // Reports nothing about values that are not finite: Leeway itself must look at the gradient.
  void Apply(const Step& step, const Elements& e) const noexcept override {
    for (size_t i = 0; i < e.count; ++i) {
      e.weights_out[i] = e.weights_in[i] - (e.gradient[i] > 0 ? step.learning_rate : 0);
    }
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      for (size_t i = 0; i < e.count; ++i) e.slots_out[slot][i] = e.slots_in[slot][i];
    }
  }

 private:
  const std::vector<Slot> slots_;
};

template <typename Made, typename... Arguments>
std::unique_ptr<Made> MakeUnless(Fault fault, Arguments&&... arguments) {
  if (fault == kMakeThrows) throw std::invalid_argument("this does not fit");
  if (fault == kMakesNothing) return nullptr;
  return std::make_unique<Made>(std::forward<Arguments>(arguments)...);
}

std::vector<Option> Fault0() { return {{.name = "fault", .about = "what it does", .value = 0}}; }

}  // namespace

LEEWAY_PLUGIN(registry) {
  registry.Add(LayerSpec{"scale", Fault0(), [](const Options& options, const Shape& input) {
                           return MakeUnless<Scale>(FaultOf(options), FaultOf(options), input);
                         }});
  registry.Add(LossSpec{"plain", Labels::kClasses, Fault0(), [](const Options& options) {
                          return MakeUnless<Plain>(FaultOf(options), FaultOf(options));
                        }});
  registry.Add(RuleSpec{"step", Fault0(), [](const Options& options) {
                          return MakeUnless<Rule>(FaultOf(options), std::vector<Slot>{});
                        }});
  registry.Add(RuleSpec{
      "four_slots", {}, [](const Options&) {
        return std::make_unique<Rule>(std::vector<Slot>{{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}});
      }});
  registry.Add(RuleSpec{"same_slots", {}, [](const Options&) {
                          return std::make_unique<Rule>(std::vector<Slot>{{"a", 0}, {"a", 0}});
                        }});
  registry.Add(RuleSpec{"two_slots", {}, [](const Options&) {
                          return std::make_unique<Rule>(std::vector<Slot>{{"a", 0}, {"b", 0}});
                        }});
  for (const char* taken : {"weights", "shadow", "average", "steps"}) {
    registry.Add(RuleSpec{std::string(taken) + "_slot", {}, [taken](const Options&) {
                            return std::make_unique<Rule>(std::vector<Slot>{{taken, 0}});
                          }});
  }
  registry.Add(RuleSpec{"unread", {}, [](const Options& options) {
                          return MakeUnless<Rule>(FaultOf(options), std::vector<Slot>{});
                        }});
}
