// What updates report about values that are not finite.
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "common/update/apply.h"
#include "leeway/v1/job.pb.h"
#include "tests/catch.h"

namespace leeway::update_finite {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::unique_ptr<UpdateRule> Rule(const v1::Update& update) { return *MakeUpdateRule(update); }

std::vector<std::unique_ptr<UpdateRule>> TrainingRules() {
  v1::Update sgd, momentum, nesterov, adagrad, adam, adamw, lion;
  sgd.mutable_sgd();
  momentum.mutable_sgd()->set_momentum(0.9);
  nesterov.mutable_sgd()->set_momentum(0.9);
  nesterov.mutable_sgd()->set_nesterov(true);
  adagrad.mutable_adagrad()->set_epsilon(1e-8);
  adam.mutable_adam()->set_beta1(0.9);
  adam.mutable_adam()->set_beta2(0.999);
  adam.mutable_adam()->set_epsilon(1e-8);
  adamw.mutable_adamw()->set_beta1(0.9);
  adamw.mutable_adamw()->set_beta2(0.999);
  adamw.mutable_adamw()->set_epsilon(1e-8);
  lion.mutable_lion();
  std::vector<std::unique_ptr<UpdateRule>> rules;
  for (const auto& update : {sgd, momentum, nesterov, adagrad, adam, adamw, lion}) {
    rules.push_back(Rule(update));
  }
  return rules;
}

std::vector<std::unique_ptr<UpdateRule>> AllRules() {
  std::vector<std::unique_ptr<UpdateRule>> rules = TrainingRules();
  rules.push_back(MakeAverageRule());
  rules.push_back(MakeReplaceRule());
  rules.push_back(MakeElasticRule(0.5));
  return rules;
}

// Makes one update of equal weights with slots of 0. Returns whether all values are finite.
bool Apply(const UpdateRule& rule, float rate, const std::vector<float>& gradient,
           float weight = 1) {
  const size_t count = gradient.size();
  const std::vector<float> weights(count, weight);
  std::vector<float> weights_out(count);
  std::vector<std::vector<float>> in(rule.slots().size(), std::vector<float>(count)), out = in;
  std::vector<const float*> slots_in;
  std::vector<float*> slots_out;
  for (auto& slot : in) slots_in.push_back(slot.data());
  for (auto& slot : out) slots_out.push_back(slot.data());
  return rule.Apply({.learning_rate = rate}, {.count = count,
                                              .weights_in = weights.data(),
                                              .weights_out = weights_out.data(),
                                              .gradient = gradient.data(),
                                              .slots_in = slots_in.data(),
                                              .slots_out = slots_out.data()});
}

TEST_CASE("every rule says whether all that it wrote is finite, whichever gradient was not") {
  constexpr size_t kCount = 37;  // whole vectors and a remainder
  for (const auto& rule : AllRules()) {
    for (float rate : {0.1f, 0.0f}) {
      CHECK(Apply(*rule, rate, std::vector<float>(kCount, -3)));
      for (float bad : {NAN, -NAN, kInfinity, -kInfinity}) {
        for (size_t i = 0; i < kCount; ++i) {
          std::vector<float> gradient(kCount, 2);
          gradient[i] = bad;
          CAPTURE(rule->slots().size(), rate, bad, i);
          CHECK_FALSE(Apply(*rule, rate, gradient));
        }
      }
    }
  }
}

TEST_CASE("a weight that overflows is told, although all that it is made of is finite") {
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const auto& rule : TrainingRules()) CHECK_FALSE(Apply(*rule, kMost, {-1, -1, -1}, kMost));
}

TEST_CASE("optimizer state that overflows is told, too, although the weights do not") {
  for (const auto& rule : AllRules()) {
    const auto names = rule->slots();
    // Only rules that square the gradient.
    if (names.empty() || (names.back() != "v" && names.back() != "sum_of_squares")) continue;
    // The square is beyond the largest float.
    CHECK_FALSE(Apply(*rule, 0.1f, {1, 1, 1e25f}));
    CHECK(Apply(*rule, 0.1f, {1, 1, 1e15f}));
  }
}

TEST_CASE("a value that is not finite is found in any of the contributions, with any weight") {
  constexpr size_t kCount = 2100;
  const auto rules = AllRules();
  for (size_t k : {1, 2, 3, 5, 8, 9}) {
    std::vector<std::vector<float>> values(k, std::vector<float>(kCount, 0.25f));
    std::vector<FloatPayload> payloads;
    for (const auto& value : values) payloads.push_back(FloatPayload::Of(value));
    std::vector<const FloatPayload*> pointers;
    for (const FloatPayload& payload : payloads) pointers.push_back(&payload);
    std::vector<float> coefficients(k, 1.0f), weights(kCount, 1), out(kCount);
    const AveragedMove averaged = {kCount, coefficients};
    for (bool elastic : {false, true}) {
      const BlockUpdate update = {.rule = rules[elastic ? rules.size() - 1 : 0].get(),
                                  .step = {.learning_rate = 0.1f},
                                  .contributions = pointers,
                                  .coefficients = coefficients,
                                  .count = kCount,
                                  .trained = 2000,
                                  .averaged = {&averaged, 1},
                                  .elastic = elastic,
                                  .weights_in = weights.data(),
                                  .weights_out = out.data()};
      CHECK(ApplyUpdate(update));
      for (size_t i = 0; i < k; ++i) {
        coefficients[i] = 0;
        for (size_t index : {size_t{0}, size_t{1024}, size_t{1999}, size_t{2000}, kCount - 1}) {
          values[i][index] = -kInfinity;
          CAPTURE(k, elastic, i, index);
          CHECK_FALSE(ApplyUpdate(update));
          values[i][index] = 0.25f;
        }
        coefficients[i] = 1;
      }
    }
  }
}

}  // namespace
}  // namespace leeway::update_finite
