#include <utility>

#include "common/status.h"
#include "common/update/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const v1::Update& update) {
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
    case v1::Update::TYPE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "update: no type that this build knows; use sgd, adagrad, adam, adamw or lion");
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeServerRule(const v1::TrainingJob& job) {
  if (job.exchange().has_elastic()) return MakeElasticRule(job.exchange().elastic().alpha());
  const v1::Update& update = job.update();
  ASSIGN_OR_RETURN(std::unique_ptr<UpdateRule> rule, MakeUpdateRule(update));
  if (!update.has_average()) return rule;
  return MakeWeightAverageRule(std::move(rule), update.average());
}

}  // namespace leeway
