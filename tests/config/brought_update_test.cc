#include "config/brought_update.h"

#include <limits>
#include <string>

#include "tests/catch.h"

namespace leeway::brought_update {
namespace {

v1::Update Rule(const std::string& yaml) {
  const absl::StatusOr<v1::Update> update = ParseUpdate(yaml);
  INFO(yaml);
  REQUIRE(update.status().ToString() == "OK");
  return *update;
}

v1::Update Resolved(const std::string& yaml) { return ResolveBroughtUpdate(Rule(yaml)).value(); }

TEST_CASE("a rule is read and written as a job's update is") {
  for (const char* yaml :
       {"{type: sgd, learning_rate: 0.1}", "{type: sgd, momentum: 0.9, learning_rate: 0.1}",
        "{type: adamw, beta1: 0.8, weight_decay: 0.1, learning_rate: 0.001, schedule: {type: step, "
        "every: {epochs: 1}, factor: 0.5}, factors: {biases: {weight_decay: 0}}, scaling: linear, "
        "average: {decay: 0.9}}"}) {
    CHECK(UpdateYaml(Rule(yaml)) == yaml);
    // Defaults are not written.
    CHECK(UpdateYaml(Resolved(yaml)) == yaml);
  }
  const auto error = [](const char* yaml) {
    return std::string(ParseUpdate(yaml).status().message());
  };
  CHECK(error("{type: sgd}") == "update.learning_rate: required key is missing");
  CHECK(error("{type: sgd, learning_rate: -1}") ==
        "update.learning_rate: must be above 0; it is -1");
  CHECK(
      error("{learning_rate: 1}") ==
      "update:1:1: type: required key is missing; one of sgd, adagrad, adam, adamw, lion, custom");
  CHECK(error("{type: sgd, nesterov: true, learning_rate: 1}") ==
        "update.nesterov: needs a momentum above 0");
  CHECK(error("[sgd]") == "update: must be a map of keys, such as {type: sgd, learning_rate: 0.1}");
  CHECK(error("") == "update: must be a map of keys, such as {type: sgd, learning_rate: 0.1}");
  CHECK(error("{type: sgd, momentun: 1, learning_rate: 1}") ==
        "update:1:13: momentun: unknown key; did you mean 'momentum'?");
  CHECK_FALSE(ParseUpdate("{type: sgd").ok());
}

TEST_CASE("what a registration brings is held to the rules, and has every default") {
  CHECK(Resolved("{type: adam, learning_rate: 1}").adam().has_beta2());
  v1::Update update = Rule("{type: sgd, learning_rate: 1}");
  update.set_learning_rate(std::numeric_limits<double>::infinity());
  CHECK(ResolveBroughtUpdate(update).status().message() ==
        "update.learning_rate: must be a finite number");
  CHECK(ResolveBroughtUpdate(v1::Update()).status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(
      ResolveBroughtUpdate(Rule("{type: custom, rule: x, learning_rate: 1}")).status().message() ==
      "update: a program cannot bring a plugin's rule: write the rule into the job, with "
      "model.plugins");
}

TEST_CASE("a rule is meant by whoever says it, with or without what optimizers do not know") {
  const char* const plain = "{type: sgd, momentum: 0.9, learning_rate: 0.1}";
  const v1::Update rule = Resolved(
      "{type: sgd, momentum: 0.9, learning_rate: 0.1, schedule: {type: cosine}, factors: {norms: "
      "{weight_decay: 0}}, scaling: linear, average: {}}");
  CHECK(MeansRule(Rule(plain), rule));
  CHECK(MeansRule(Rule(plain), Resolved(plain)));
  CHECK(MeansRule(Resolved(plain), Resolved(plain)));
  CHECK(MeansRule(rule, rule));
  for (const char* other :
       {"{type: sgd, momentum: 0.9, learning_rate: 0.2}", "{type: sgd, learning_rate: 0.1}",
        "{type: sgd, momentum: 0.9, nesterov: true, learning_rate: 0.1}",
        "{type: adam, learning_rate: 0.1}",
        "{type: sgd, momentum: 0.9, learning_rate: 0.1, schedule: {type: step, every: {epochs: 1}, "
        "factor: 0.5}}",
        "{type: sgd, momentum: 0.9, learning_rate: 0.1, scaling: square_root}",
        "{type: sgd, momentum: 0.9, learning_rate: 0.1, factors: {norms: {weight_decay: 1}}}"}) {
    CAPTURE(other);
    CHECK_FALSE(MeansRule(Rule(other), rule));
  }
}

}  // namespace
}  // namespace leeway::brought_update
