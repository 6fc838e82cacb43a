// Names and options of the things that a job uses from its plugins.
#include "common/job_key.h"
#include "common/plugins/label_loss.h"
#include "common/plugins/options.h"
#include "tests/common/plugins/support.h"

namespace leeway::plugin_options {
namespace {

using testing::FromText;
using testing::LoadedPlugins;
using testing::PluginFile;

TEST_CASE("options that are not given have their defaults") {
  const auto chosen =
      LoadedPlugins({"example"})
          .Rule(FromText<v1::CustomRule>("rule: 'signum' options { key: 'beta' value: 0.5 }"));
  REQUIRE(chosen.ok());
  CHECK(chosen->options["beta"] == 0.5);
  CHECK(chosen->options["weight_decay"] == 0);
  CHECK_THROWS_AS(chosen->options["other"], std::out_of_range);
}

TEST_CASE("a name or an option that is wrong is named with its key") {
  const Plugins plugins = LoadedPlugins({"hostile", "example"});
  const std::string beta = "options { key: 'beta' value: ", good = beta + "0.5 } ";
  const std::pair<std::string, std::string> table[] = {
      {"rule: 'signun'", "rule: the job's plugins have no rule 'signun'; did you mean 'signum'?"},
      {"rule: 'signum'", "options.beta: required option is missing: share of the old momentum"},
      {"rule: 'signum' " + beta + "1 }", "options.beta: must be below 1; it is 1"},
      {"rule: 'signum' " + beta + "-1 }", "options.beta: must be at least 0; it is -1"},
      {"rule: 'signum' " + beta + "nan }", "options.beta: must be a finite number"},
      {"rule: 'signum' " + good + "options { key: 'betta' value: 1 }",
       "options.betta: unknown option; did you mean 'beta'?"},
      {"rule: 'four_slots' options { key: 'x' value: 1 }",
       "options.x: unknown option; no options are allowed here"},
  };
  for (const auto& [text, error] : table) {
    const absl::Status status = plugins.Rule(FromText<v1::CustomRule>(text)).status();
    CAPTURE(text);
    CHECK(std::string(status.message()) == error);
    CHECK(KeyOf(status) == error.substr(0, error.find(':')));
  }
  const auto custom = FromText<v1::Custom>("name: 'swish'");
  CHECK(plugins.Layer(custom).ok());
  CHECK(Plugins().Layer(custom).status().message() ==
        "name: the job's plugins have no layer 'swish'; they have no layer at all");
  const auto huber = FromText<v1::Custom>("name: 'huber' options { key: 'delta' value: 0 }");
  CHECK(plugins.Loss(huber).status().message() == "options.delta: must be above 0; it is 0");
  CHECK(CheckBounds({.name = "x", .max = 1}, 2).message() == "must be at most 1; it is 2");
}

TEST_CASE("the labels of a plugin's loss are those of a built-in one") {
  const auto loss = [](const std::string& text) {
    return LabelLoss(FromText<v1::Model>("plugins: '" + PluginFile("example") + "' plugins: '" +
                                         PluginFile("hostile") + "' " + text));
  };
  CHECK(loss("loss: LOSS_LOGISTIC") == v1::LOSS_LOGISTIC);
  CHECK(loss("loss: LOSS_CUSTOM custom_loss { name: 'huber' }") == v1::LOSS_SQUARED);
  CHECK(loss("loss: LOSS_CUSTOM custom_loss { name: 'plain' }") == v1::LOSS_SOFTMAX_CROSS_ENTROPY);
  CHECK(loss("loss: LOSS_CUSTOM custom_loss { name: 'none' }") == v1::LOSS_SQUARED);
}

}  // namespace
}  // namespace leeway::plugin_options
