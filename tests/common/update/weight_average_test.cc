// The moving average of the weights, against its formula in double.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/text_format.h>

#include "common/update/apply.h"
#include "common/update/rule.h"
#include "leeway/v1/job.pb.h"
#include "tests/catch.h"

namespace leeway::weight_average {
namespace {

constexpr size_t kCount = 300;

std::unique_ptr<UpdateRule> RuleOf(const std::string& update) {
  v1::TrainingJob job;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(update, job.mutable_update()));
  auto rule = MakeServerRule(job);
  REQUIRE(rule.ok());
  return *std::move(rule);
}

// A block whose first `trained` elements are trained and whose other elements are averaged, and its
// updates.
struct TestBlock {
  TestBlock(const UpdateRule& rule, size_t trained) : rule(rule), trained(trained) {
    for (size_t i = 0; i < kCount; ++i) weights[i] = 0.01f * static_cast<float>(i) - 1;
    slots.assign(rule.slots().size(), std::vector<float>(kCount));
    slots[*rule.average_slot()] = weights;
  }

  // Updates by a gradient that differs by element and step. Returns false if a value is not finite.
  bool Update(uint64_t number, double share = 1) {
    std::vector<float> gradient(kCount);
    for (size_t i = 0; i < kCount; ++i) {
      gradient[i] = 0.1f * static_cast<float>((i * 7 + number * 13) % 11) - 0.5f;
    }
    const FloatPayload payload = FloatPayload::Of(gradient, nullptr);
    const FloatPayload* const contributions[] = {&payload};
    const float one[] = {1};
    const AveragedMove all{.end = kCount, .shares = one};
    std::vector<const float*> in;
    std::vector<float*> out;
    for (std::vector<float>& slot : slots) in.push_back(slot.data());
    for (std::vector<float>& slot : slots) out.push_back(slot.data());
    BlockUpdate update;
    update.rule = &rule;
    update.step = {.learning_rate = 0.3f, .number = number, .share = share};
    update.contributions = contributions;
    update.coefficients = one;
    update.count = kCount;
    update.trained = trained;
    if (trained < kCount) update.averaged = {&all, 1};
    update.weights_in = weights.data();
    update.weights_out = weights.data();
    update.slots_in = in;
    update.slots_out = out;
    return ApplyUpdate(update);
  }
  const std::vector<float>& average() const { return slots[*rule.average_slot()]; }

  const UpdateRule& rule;
  const size_t trained;
  std::vector<float> weights = std::vector<float>(kCount);
  std::vector<std::vector<float>> slots;
};

TEST_CASE("the average follows the weights of every update, whatever the rule") {
  for (const char* update : {"sgd {}", "sgd { momentum: 0.9 nesterov: true }", "adagrad {}",
                             "adamw { weight_decay: 0.1 }", "lion {}"}) {
    CAPTURE(update);
    const auto plain = RuleOf(update);
    const auto rule = RuleOf(std::string(update) + " average { decay: 0.75 }");
    CHECK_FALSE(plain->average_slot().has_value());
    CHECK(rule->slots().size() == plain->slots().size() + 1);
    TestBlock block(*rule, kCount);
    std::vector<double> wanted(kCount);
    for (uint64_t number = 1; number <= 6; ++number) {
      REQUIRE(block.Update(number));
      for (size_t i = 0; i < kCount; ++i) {
        const double x = block.weights[i];
        wanted[i] = number == 1 ? x : 0.75 * wanted[i] + 0.25 * x;
        REQUIRE(std::abs(block.average()[i] - wanted[i]) < 1e-6);
      }
    }
  }
}

TEST_CASE("with decay 0 it is the weights, which the average's decay does not touch") {
  const auto slow = RuleOf("adam {} average {}"), none = RuleOf("adam {} average { decay: 0 }");
  TestBlock with(*slow, kCount), without(*none, kCount);
  for (uint64_t number = 1; number <= 3; ++number) {
    REQUIRE(with.Update(number));
    REQUIRE(without.Update(number));
  }
  CHECK(with.weights == without.weights);
  CHECK(with.slots[0] == without.slots[0]);
  CHECK(with.slots[1] == without.slots[1]);
  CHECK(without.average() == without.weights);
  CHECK(with.average() != with.weights);
}

TEST_CASE("values that are averaged and not trained are in the average as they are") {
  const auto rule = RuleOf("sgd { momentum: 0.9 } average { decay: 0.9 }");
  TestBlock block(*rule, 100);
  for (uint64_t number = 1; number <= 3; ++number) REQUIRE(block.Update(number));
  const auto tail = [](const std::vector<float>& values) {
    return std::vector<float>(values.begin() + 100, values.end());
  };
  CHECK(tail(block.average()) == tail(block.weights));
  CHECK(block.average()[0] != block.weights[0]);
}

TEST_CASE("two updates, each half of a clock, forget as much as one") {
  const auto rule = RuleOf("sgd {} average { decay: 0.64 }");
  TestBlock block(*rule, kCount);
  REQUIRE(block.Update(1, 0.5));
  std::vector<float> wanted = block.average();
  for (uint64_t number = 2; number <= 3; ++number) {
    REQUIRE(block.Update(number, 0.5));
    for (size_t i = 0; i < kCount; ++i) wanted[i] = 0.8f * wanted[i] + 0.2f * block.weights[i];
  }
  for (size_t i = 0; i < kCount; ++i) REQUIRE(std::abs(block.average()[i] - wanted[i]) < 1e-6);
}

TEST_CASE("a job without an average has none") {
  CHECK_FALSE(RuleOf("adamw {}")->average_slot().has_value());
}

}  // namespace
}  // namespace leeway::weight_average
