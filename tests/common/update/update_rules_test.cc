#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "common/philox.h"
#include "common/update/formula.h"
#include "common/update/rule.h"
#include "leeway/v1/job.pb.h"
#include "tests/catch.h"
#include "tests/same_bits.h"

namespace leeway::update_rules {
namespace {

using testing::SameBits;

constexpr float kRate = 0.05f;

// One element of an optimizer in double precision, as the paper writes it.
struct Element {
  double x, slot0 = 0, slot1 = 0;
};
// One step of the optimizer. `rate` and `decay` are factors of a part (UpdatePart).
struct Now {
  double gradient = 0;
  double t = 1;
  double rate = 1;
  double decay = 1;
};
using Reference = std::function<void(Element&, const Now& now)>;

struct Case {
  std::string name;
  v1::Update update;
  Reference reference;
};

v1::Update Sgd(double momentum, bool nesterov, double decay) {
  v1::Update update;
  update.mutable_sgd()->set_momentum(momentum);
  update.mutable_sgd()->set_nesterov(nesterov);
  update.mutable_sgd()->set_weight_decay(decay);
  return update;
}

Reference SgdReference(double momentum, bool nesterov, double decay) {
  return [=](Element& e, const Now& now) {
    const double g = now.gradient + now.decay * decay * e.x;
    e.slot0 = momentum * e.slot0 + g;
    e.x -= now.rate * kRate * (nesterov ? g + momentum * e.slot0 : e.slot0);
  };
}

Reference AdagradReference(double epsilon, double decay) {
  return [=](Element& e, const Now& now) {
    const double g = now.gradient + now.decay * decay * e.x;
    e.slot0 += g * g;
    e.x -= now.rate * kRate * g / (std::sqrt(e.slot0) + epsilon);
  };
}

Reference AdamReference(double b1, double b2, double epsilon, double l2, double decoupled) {
  return [=](Element& e, const Now& now) {
    const double g = now.gradient + now.decay * l2 * e.x;
    e.slot0 = b1 * e.slot0 + (1 - b1) * g;
    e.slot1 = b2 * e.slot1 + (1 - b2) * g * g;
    const double m = e.slot0 / (1 - std::pow(b1, now.t)), v = e.slot1 / (1 - std::pow(b2, now.t));
    const double rate = now.rate * kRate;
    e.x = e.x - rate * now.decay * decoupled * e.x - rate * m / (std::sqrt(v) + epsilon);
  };
}

Reference LionReference(double b1, double b2, double decay) {
  return [=](Element& e, const Now& now) {
    const double c = b1 * e.slot0 + (1 - b1) * now.gradient;
    const double sign = c > 0 ? 1 : (c < 0 ? -1 : 0);
    e.x -= now.rate * kRate * (sign + now.decay * decay * e.x);
    e.slot0 = b2 * e.slot0 + (1 - b2) * now.gradient;
  };
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (double decay : {0.0, 0.01}) {
    cases.push_back({"sgd", Sgd(0, false, decay), SgdReference(0, false, decay)});
    cases.push_back({"momentum", Sgd(0.9, false, decay), SgdReference(0.9, false, decay)});
    cases.push_back({"nesterov", Sgd(0.9, true, decay), SgdReference(0.9, true, decay)});
    v1::Update adagrad, adam, adamw, lion;
    adagrad.mutable_adagrad()->set_weight_decay(decay);
    adam.mutable_adam()->set_weight_decay(decay);
    adamw.mutable_adamw()->set_weight_decay(decay);
    adamw.mutable_adamw()->set_beta1(0.8);
    lion.mutable_lion()->set_weight_decay(10 * decay);
    lion.mutable_lion()->set_beta1(0.8);
    cases.push_back({"adagrad", adagrad, AdagradReference(1e-10, decay)});
    cases.push_back({"adam", adam, AdamReference(0.9, 0.999, 1e-8, decay, 0)});
    cases.push_back({"adamw", adamw, AdamReference(0.8, 0.999, 1e-8, 0, decay)});
    cases.push_back({"lion", lion, LionReference(0.8, 0.99, 10 * decay)});
  }
  return cases;
}

// A rule's weights and slots, updated tile by tile.
struct State {
  State(const UpdateRule& rule, std::vector<float> start)
      : rule(rule), x(std::move(start)), slots(rule.slots().size(), std::vector<float>(x.size())) {}

  // Makes a step into separate buffers that held garbage, or in place.
  void Step(const std::vector<float>& gradient, uint64_t number, size_t tile, bool in_place,
            const UpdatePart& part = {}) {
    const UpdateStep step = UpdateStep{kRate, number}.In(part);
    State next = *this;
    next.x.assign(x.size(), 777.0f);
    for (auto& slot : next.slots) slot.assign(x.size(), -777.0f);
    State& out = in_place ? *this : next;
    for (size_t offset = 0; offset < x.size(); offset += tile) {
      std::vector<const float*> slots_in;
      std::vector<float*> slots_out;
      for (size_t s = 0; s < slots.size(); ++s) {
        slots_in.push_back(slots[s].data() + offset);
        slots_out.push_back(out.slots[s].data() + offset);
      }
      rule.get().Apply(step, {.count = std::min(tile, x.size() - offset),
                              .weights_in = x.data() + offset,
                              .weights_out = out.x.data() + offset,
                              .gradient = gradient.data() + offset,
                              .slots_in = slots_in.data(),
                              .slots_out = slots_out.data()});
    }
    if (!in_place) {
      x = next.x;
      slots = next.slots;
    }
  }

  std::reference_wrapper<const UpdateRule> rule;
  std::vector<float> x;
  std::vector<std::vector<float>> slots;
};

std::vector<float> Draw(size_t count, uint64_t key) {
  RandomStream stream(7, RandomPurpose::kInitialize, {key});
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(stream.Normal());
  return values;
}

// Compares eight steps of some elements with their formula.
void CheckFormula(const Case& c, bool in_place, const UpdatePart& part) {
  const auto rule = MakeUpdateRule(c.update);
  REQUIRE(rule.ok());
  State state(**rule, Draw(101, 0));
  std::vector<Element> elements;
  for (float x : state.x) elements.push_back({x});
  for (uint64_t t = 1; t <= 8; ++t) {
    const std::vector<float> gradient = Draw(101, t);
    state.Step(gradient, t, 1000, in_place, part);
    for (size_t i = 0; i < elements.size(); ++i) {
      c.reference(elements[i], {gradient[i], static_cast<double>(t), part.rate, part.decay});
      REQUIRE(state.x[i] == Approx(elements[i].x).epsilon(2e-5).margin(2e-6));
    }
  }
}

TEST_CASE("every rule follows its paper's formula in double precision, in place or not") {
  for (const Case& c : Cases()) {
    for (bool in_place : {false, true}) {
      INFO(c.name << (in_place ? " in place" : ""));
      CheckFormula(c, in_place, {});
    }
  }
}

TEST_CASE("a rule's step as numbers gives the bits of the rule") {
  for (const Case& c : Cases()) {
    INFO(c.name);
    const auto rule = MakeUpdateRule(c.update);
    REQUIRE(rule.ok());
    State state(**rule, Draw(101, 0));
    for (uint64_t t = 1; t <= 3; ++t) {
      const State before = state;
      const std::vector<float> gradient = Draw(101, t);
      const UpdatePart part{.rate = 0.5, .decay = 3};
      state.Step(gradient, t, 101, true, part);
      const UpdateFormula formula = (*rule)->formula(UpdateStep{kRate, t}.In(part));
      for (size_t i = 0; i < gradient.size(); ++i) {
        UpdateFormula::Element in{.weight = before.x[i]};
        for (size_t s = 0; s < before.slots.size(); ++s) in.slots[s] = before.slots[s][i];
        const UpdateFormula::Element out = formula.Apply(in, gradient[i]);
        REQUIRE(out.weight == state.x[i]);
        for (size_t s = 0; s < before.slots.size(); ++s) {
          REQUIRE(out.slots[s] == state.slots[s][i]);
        }
      }
    }
  }
}

TEST_CASE("a part's factors multiply the learning rate and the weight decay of every rule") {
  for (const Case& c : Cases()) {
    for (const UpdatePart& part : {UpdatePart{.rate = 0.5, .decay = 3},
                                   {.rate = 1, .decay = 0},
                                   {.rate = 2, .decay = 1},
                                   {.rate = 0, .decay = 1}}) {
      INFO(c.name << ", rate " << part.rate << ", decay " << part.decay);
      CheckFormula(c, false, part);
    }
  }
}

TEST_CASE("a learning rate of 0 leaves the weights, and no factor changes a bit") {
  for (const Case& c : Cases()) {
    INFO(c.name);
    const auto rule = MakeUpdateRule(c.update);
    REQUIRE(rule.ok());
    State frozen(**rule, Draw(101, 0)), plain = frozen, ones = frozen;
    for (uint64_t t = 1; t <= 3; ++t) {
      frozen.Step(Draw(101, t), t, 101, true, {.rate = 0});
      plain.Step(Draw(101, t), t, 101, true);
      ones.Step(Draw(101, t), t, 101, true, {.rate = 1, .decay = 1});
    }
    CHECK(SameBits(frozen.x, Draw(101, 0)));
    CHECK_FALSE(SameBits(plain.x, frozen.x));
    CHECK(SameBits(plain.x, ones.x));
  }
}

TEST_CASE("a rule gives the same bits however the update is cut into tiles, in place or not") {
  constexpr size_t kCount = 2503;
  for (const Case& c : Cases()) {
    const auto rule = MakeUpdateRule(c.update);
    REQUIRE(rule.ok());
    State whole(**rule, Draw(kCount, 0));
    for (uint64_t t = 1; t <= 3; ++t) whole.Step(Draw(kCount, t), t, kCount, false);
    for (size_t tile : {1, 7, 64, 1000}) {
      for (bool in_place : {false, true}) {
        INFO(c.name << ", tiles of " << tile);
        State cut(**rule, Draw(kCount, 0));
        for (uint64_t t = 1; t <= 3; ++t) cut.Step(Draw(kCount, t), t, tile, in_place);
        REQUIRE(SameBits(cut.x, whole.x));
        for (size_t s = 0; s < cut.slots.size(); ++s)
          REQUIRE(SameBits(cut.slots[s], whole.slots[s]));
      }
    }
  }
}

// Returns the weights after each of some updates, from x = 1.
std::vector<float> Path(const v1::Update& update, float rate, const std::vector<float>& gradients) {
  const auto rule = MakeUpdateRule(update);
  REQUIRE(rule.ok());
  float x = 1, slot0 = 0, slot1 = 0;
  const float* slots_in[] = {&slot0, &slot1};
  float* slots_out[] = {&slot0, &slot1};
  std::vector<float> path;
  for (size_t i = 0; i < gradients.size(); ++i) {
    (*rule)->Apply({rate, i + 1}, {1, &x, &x, &gradients[i], slots_in, slots_out});
    path.push_back(x);
  }
  return path;
}

void CheckPath(const v1::Update& update, float rate, const std::vector<float>& gradients,
               const std::vector<double>& expected) {
  const std::vector<float> path = Path(update, rate, gradients);
  REQUIRE(path.size() == expected.size());
  for (size_t i = 0; i < path.size(); ++i) REQUIRE(path[i] == Approx(expected[i]).epsilon(1e-6));
}

TEST_CASE("rules give the values computed by hand") {
  CheckPath(Sgd(0, false, 0), 0.1f, {0.5f, -2}, {0.95, 1.15});
  CheckPath(Sgd(0, false, 0.1), 0.1f, {0.5f}, {0.94});
  CheckPath(Sgd(0.9, false, 0), 0.1f, {0.5f, 0.5f}, {0.95, 0.855});
  CheckPath(Sgd(0.9, true, 0), 0.1f, {0.5f, 0.5f}, {0.905, 0.7695});
  v1::Update adagrad, adam, adamw;
  adagrad.mutable_adagrad();
  CheckPath(adagrad, 0.1f, {3, 4}, {0.9, 0.82});
  adam.mutable_adam();
  CheckPath(adam, 0.01f, {0.3f, -0.3f}, {0.99, 0.990526316});
  adamw.mutable_adamw()->set_weight_decay(0.1);
  CheckPath(adamw, 0.01f, {0.3f}, {0.989});
  // By the signs of c: 0.03 and -0.0073; then 0, 0.05 and 0.0005, where g itself is below 0.
  v1::Update lion;
  lion.mutable_lion()->set_weight_decay(0.1);
  CheckPath(lion, 0.01f, {0.3f, -0.1f}, {0.989, 0.998011});
  v1::Update still;
  still.mutable_lion();
  CheckPath(still, 0.01f, {0, 0.5f, -0.04f}, {1, 0.99, 0.98});
}

// Returns the weight after `steps` updates by gradients 1, -2, 3, ... repeated.
double After(const v1::Update& update, int steps, float learning_rate) {
  const auto rule = *MakeUpdateRule(update);
  float x = 1, slots[2] = {rule->slot_start(0), rule->slot_start(1)};
  const float* in[] = {&slots[0], &slots[1]};
  float* out[] = {&slots[0], &slots[1]};
  for (int i = 1; i <= steps; ++i) {
    const float g = static_cast<float>(i % 2 == 1 ? i : -i);
    REQUIRE(rule->Apply({learning_rate, static_cast<uint64_t>(i)}, {1, &x, &x, &g, in, out}));
  }
  return x;
}

TEST_CASE("FedAdam and FedAdagrad as in the paper: v starts at tau^2, and no bias correction") {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.99, kTau = 0.25, kRate = 0.01;
  v1::Update adam, adagrad;
  adam.mutable_adam()->set_beta2(kBeta2);
  adam.mutable_adam()->set_epsilon(kTau);
  adam.mutable_adam()->set_bias_correction(false);
  adam.mutable_adam()->set_initial_v(kTau * kTau);
  adagrad.mutable_adagrad()->set_epsilon(kTau);
  adagrad.mutable_adagrad()->set_initial_sum(kTau * kTau);
  for (const int steps : {1, 2, 10, 100}) {
    // Algorithm 2 of arXiv:2003.00295, lines 10 to 14, with Delta = -g; FedAdagrad with beta1 = 0.
    double x_adam = 1, x_adagrad = 1, m = 0, v = kTau * kTau, sum = kTau * kTau;
    for (int i = 1; i <= steps; ++i) {
      const double delta = i % 2 == 1 ? -i : i;
      m = kBeta1 * m + (1 - kBeta1) * delta;
      v = kBeta2 * v + (1 - kBeta2) * delta * delta;
      x_adam += kRate * m / (std::sqrt(v) + kTau);
      sum += delta * delta;
      x_adagrad += kRate * delta / (std::sqrt(sum) + kTau);
    }
    CAPTURE(steps);
    CHECK(After(adam, steps, kRate) == Approx(x_adam).epsilon(1e-5));
    CHECK(After(adagrad, steps, kRate) == Approx(x_adagrad).epsilon(1e-5));
  }
  // The default is Adam's usual form, which moves differently.
  v1::Update usual = adam;
  usual.mutable_adam()->clear_bias_correction();
  usual.mutable_adam()->clear_initial_v();
  CHECK(std::abs(After(usual, 1, kRate) - After(adam, 1, kRate)) > 0.1 * kRate);
}

TEST_CASE("rules name their slots, and an update without a type is refused") {
  using Names = std::vector<std::string_view>;
  REQUIRE((*MakeUpdateRule(Sgd(0, true, 0)))->slots().empty());
  REQUIRE((*MakeUpdateRule(Sgd(0.5, false, 0)))->slots() == Names{"momentum"});
  v1::Update update;
  REQUIRE(absl::IsInvalidArgument(MakeUpdateRule(update).status()));
  update.mutable_adam();
  REQUIRE((*MakeUpdateRule(update))->slots() == Names{"m", "v"});
  update.mutable_adagrad();
  REQUIRE((*MakeUpdateRule(update))->slots() == Names{"sum_of_squares"});
  update.mutable_lion();
  REQUIRE((*MakeUpdateRule(update))->slots() == Names{"m"});
}

TEST_CASE("averaged values gain their move and the elastic centre gains alpha of the difference") {
  const float x[] = {1, 2}, gradient[] = {0.25f, -4};
  float out[2];
  MakeAverageRule()->Apply({9, 5}, {2, x, out, gradient, nullptr, nullptr});
  REQUIRE((out[0] == 1.25f && out[1] == -2));
  MakeElasticRule(0.5)->Apply({9, 5}, {2, x, out, gradient, nullptr, nullptr});
  REQUIRE((out[0] == 1.125f && out[1] == 0));
}

}  // namespace
}  // namespace leeway::update_rules
