#include <utility>

#include "common/job_key.h"
#include "common/status.h"
#include "common/update/job_rule.h"
#include "common/update/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {
namespace {

// Returns the job's rule at `key`. Only a job with a plugin's rule needs the plugins.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeJobRule(const v1::TrainingJob& job,
                                                        const v1::Update& update,
                                                        absl::string_view key) {
  if (!update.has_custom()) return MakeUpdateRule(update);
  ASSIGN_OR_RETURN(const Plugins plugins, Plugins::Load(job.model()));
  auto rule = MakeUpdateRule(update, plugins);
  if (!rule.ok()) return AtKey(rule.status(), key);
  return rule;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const v1::Update& update,
                                                           const Plugins& plugins) {
  switch (update.type_case()) {
    case v1::Update::kSgd:
      return MakeSgdRule(update.sgd());
    case v1::Update::kAdagrad:
      return MakeAdagradRule(update.adagrad());
    case v1::Update::kAdam:
      return MakeAdamRule(update.adam());
    case v1::Update::kAdamw:
      return MakeAdamWRule(update.adamw());
    case v1::Update::kLion:
      return MakeLionRule(update.lion());
    case v1::Update::kCustom:
      return MakeCustomRule(update.custom(), plugins);
    case v1::Update::TYPE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "update: this build does not know the type; use sgd, adagrad, adam, adamw, lion or custom");
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const v1::Update& update) {
  return MakeUpdateRule(update, Plugins());
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeServerRule(const v1::TrainingJob& job) {
  if (job.exchange().has_elastic()) return MakeElasticRule(job.exchange().elastic().alpha());
  const v1::Update& update = job.update();
  ASSIGN_OR_RETURN(std::unique_ptr<UpdateRule> rule, MakeJobRule(job, update, "update"));
  if (update.has_average()) rule = MakeWeightAverageRule(std::move(rule), update.average());
  if (!update.steps_by_element() || !rule->uses_number()) return rule;
  return MakeStepsByElementRule(std::move(rule));
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeLocalRule(const v1::TrainingJob& job) {
  const v1::Exchange& exchange = job.exchange();
  if (exchange.has_delta())
    return MakeJobRule(job, exchange.delta().optimizer(), "exchange.optimizer");
  if (exchange.has_elastic())
    return MakeJobRule(job, exchange.elastic().optimizer(), "exchange.optimizer");
  return nullptr;
}

}  // namespace leeway
