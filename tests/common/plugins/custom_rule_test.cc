// A plugin's update rule, as servers and workers use it.
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/job_key.h"
#include "common/update/job_rule.h"
#include "tests/common/plugins/support.h"

namespace leeway::custom_rule {
namespace {

using testing::FromText;
using testing::LoadedPlugins;
using testing::PluginFile;

absl::StatusOr<std::unique_ptr<UpdateRule>> Rule(const std::string& text) {
  return MakeUpdateRule(FromText<v1::Update>("custom { " + text + " }"),
                        LoadedPlugins({"example", "hostile"}));
}

// Updates these values once, in place.
struct Values {
  std::vector<float> weights, gradient, slot;
  bool Apply(const UpdateRule& rule, const UpdateStep& step) {
    float* slots[] = {slot.data()};
    return rule.Apply(
        step, {weights.size(), weights.data(), weights.data(), gradient.data(), slots, slots});
  }
};

TEST_CASE("the example's rule does what its paper says, with the step's rate and decay") {
  const auto rule = Rule(
      "rule: 'signum' options { key: 'beta' value: 0.5 } "
      "options { key: 'weight_decay' value: 0.5 }");
  REQUIRE(rule.ok());
  CHECK((*rule)->slots() == std::vector<std::string_view>{"momentum"});
  CHECK((*rule)->slot_start(0) == 0);
  Values values{{1, 1, -2}, {4, -4, 0}, {0, 2, 6}};
  CHECK(values.Apply(**rule, {.learning_rate = 0.25f, .number = 1, .decay = 0.5}));
  CHECK(values.slot == std::vector<float>{2, -1, 3});
  const float kept = 1 - 0.25f * 0.5f * 0.5f;
  CHECK(values.weights == std::vector<float>{kept - 0.25f, kept + 0.25f, -2 * kept - 0.25f});
}

TEST_CASE("what is not finite is found, also in a gradient of which the rule makes no harm") {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto signum = *Rule("rule: 'signum' options { key: 'beta' value: 0.5 }");
  const auto step = *Rule("rule: 'step'");
  for (const float bad : {infinity, -infinity, std::nanf("")}) {
    CAPTURE(bad);
    CHECK_FALSE(Values{{0, 0}, {0, bad}, {0, 0}}.Apply(*signum, {.learning_rate = 1}));
    CHECK_FALSE(Values{{0, 0}, {0, bad}, {}}.Apply(*step, {.learning_rate = 1}));
    CHECK_FALSE(Values{{0, bad}, {0, 0}, {}}.Apply(*step, {.learning_rate = 1}));
    CHECK_FALSE(Values{{0, 0}, {0, 0}, {0, bad}}.Apply(*signum, {.learning_rate = 1}));
  }
  CHECK(Values{{0, 0}, {0, 0}, {}}.Apply(*step, {.learning_rate = 1}));
}

TEST_CASE("what is not finite is found in each slot of a rule") {
  const auto rule = *Rule("rule: 'two_slots'");
  for (int bad = -1; bad < 2; ++bad) {
    std::vector<float> weights(2), gradient(2), slots[2] = {{0, 0}, {0, 0}};
    if (bad >= 0) slots[bad][1] = std::nanf("");
    float* all[] = {slots[0].data(), slots[1].data()};
    CAPTURE(bad);
    CHECK(rule->Apply({.learning_rate = 1},
                      {2, weights.data(), weights.data(), gradient.data(), all, all}) == (bad < 0));
  }
}

TEST_CASE("a rule that cannot be made is an error that names it") {
  const std::pair<std::string, std::string> table[] = {
      {"rule: 'step' options { key: 'fault' value: 1 }", "rule 'step': this does not fit"},
      {"rule: 'step' options { key: 'fault' value: 2 }",
       "rule 'step': the plugin's `make` returned no rule"},
      {"rule: 'four_slots'", "rule 'four_slots': has 4 slots; at most 3 are allowed"},
      {"rule: 'same_slots'",
       "rule 'same_slots': slot 1 needs a unique name of lower-case letters, digits and '_', and a "
       "finite start; the names weights, shadow, average and steps are reserved"},
      {"rule: 'unread'",
       "rule 'unread': the plugin reads the option 'fault', but does not register it"},
  };
  for (const char* taken : {"weights", "shadow", "average", "steps"}) {
    CHECK_THAT(Rule(absl::StrCat("rule: '", taken, "_slot'")).status().ToString(),
               Catch::Contains("slot 0 needs a unique name"));
  }
  for (const auto& [text, error] : table) {
    const auto rule = Rule(text);
    REQUIRE_FALSE(rule.ok());
    CHECK(std::string(rule.status().message()) == "rule: " + error);
  }
}

TEST_CASE("a job's rules are at their keys, and need its plugins only if they are of one") {
  auto job = FromText<v1::TrainingJob>(
      "model { plugins: '/nowhere.so' } update { sgd {} } exchange { delta { optimizer { custom { "
      "rule: 'signum' } } } }");
  CHECK(MakeServerRule(job).ok());
  CHECK(KeyOf(MakeLocalRule(job).status()) == "model.plugins.0");
  job.mutable_model()->set_plugins(0, PluginFile("example"));
  CHECK(KeyOf(MakeLocalRule(job).status()) == "exchange.optimizer.options.beta");
  *job.mutable_update() = job.exchange().delta().optimizer();
  CHECK(KeyOf(MakeServerRule(job).status()) == "update.options.beta");
  *job.mutable_exchange()->mutable_elastic()->mutable_optimizer() = job.update();
  CHECK(KeyOf(MakeLocalRule(job).status()) == "exchange.optimizer.options.beta");
  job.mutable_exchange()->mutable_gradient();
  CHECK(*MakeLocalRule(job) == nullptr);
}

}  // namespace
}  // namespace leeway::custom_rule
