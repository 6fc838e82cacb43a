#include "launcher/plan/checked_job.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/job_key.h"
#include "common/plugins/label_loss.h"
#include "common/status.h"
#include "common/update/job_rule.h"
#include "config/external.h"
#include "config/length.h"
#include "launcher/plan/data_files.h"
#include "launcher/plan/input_warning.h"
#include "worker/data/dataset.h"
#include "worker/data/sources/test_data.h"
#include "worker/device/make_backend.h"
#include "worker/formats/model_file.h"

namespace leeway {

namespace {

// Makes the checks that are only possible when the job's plugins are open.
absl::Status CheckPlugins(const v1::TrainingJob& job) {
  RETURN_IF_ERROR(MakeServerRule(job).status());
  RETURN_IF_ERROR(MakeLocalRule(job).status());
  const bool by_accuracy = job.evaluation().has_early_stop() &&
                           job.evaluation().early_stop().metric() == v1::STOP_METRIC_TEST_ACCURACY;
  if (!by_accuracy || LabelLoss(job.model()) != v1::LOSS_SQUARED) return absl::OkStatus();
  return AtKey(
      absl::InvalidArgumentError("a loss of numbers has no accuracy: use metric: test_loss"),
      "evaluation.early_stop.metric");
}

absl::StatusOr<CheckedJob> Check(const v1::TrainingJob& job, const std::string& data_dir) {
  RETURN_IF_ERROR(CheckHasLayers(job, "this command"));
  RETURN_IF_ERROR(CheckDataFiles(job, data_dir));
  CheckedJob checked;
  ASSIGN_OR_RETURN(checked.data, TrainingData::Open(job, data_dir, 0));
  RETURN_IF_ERROR(OpenTestDataOf(job, data_dir, checked.data->dataset()).status());
  ASSIGN_OR_RETURN(checked.backend, MakeCpuBackend(job.workers()));
  ASSIGN_OR_RETURN(
      checked.model,
      Model::Build(job.model(), checked.data->shape(), checked.data->classes(), *checked.backend,
                   checked.data->dataset().labels_each(), job.data().augment().mixup() > 0));
  RETURN_IF_ERROR(CheckPlugins(job));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> steps,
                   TrainingData::StepsOfRanks(job, data_dir, *checked.data));
  checked.steps_per_epoch = StepsPerEpoch(job, steps);
  // With leases no rank is idle in advance, because the servers lease examples to any worker that
  // asks.
  const bool leased = job.data().assignment() == v1::ASSIGNMENT_LEASED;
  for (uint32_t rank = 0; rank < steps.size() && !leased; ++rank) {
    if (steps[rank] == 0) checked.idle.push_back(rank);
  }
  if (checked.steps_per_epoch > 0) return checked;
  return AtKey(absl::InvalidArgumentError("no worker has any training data"), "data");
}

std::string IdleWarning(const CheckedJob& checked) {
  if (checked.idle.empty()) return "";
  const bool one = checked.idle.size() == 1;
  constexpr size_t kShown = 8;
  const std::vector<uint32_t> shown(
      checked.idle.begin(),
      checked.idle.begin() + static_cast<ptrdiff_t>(std::min(kShown, checked.idle.size())));
  const size_t more = checked.idle.size() - shown.size();
  return absl::StrCat(one ? "worker " : "workers ", absl::StrJoin(shown, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "", one ? " has" : " have",
                      " no examples at all and will compute nothing: the data have fewer batches "
                      "than the job has workers (data.batch_size, data.partition)");
}

}  // namespace

absl::StatusOr<CheckedJob> CheckJob(const v1::TrainingJob& job, const JobPlaces& places,
                                    const std::string& data_dir) {
  absl::StatusOr<CheckedJob> checked = Check(job, data_dir);
  if (!checked.ok()) return places.Place(checked.status());
  return checked;
}

absl::Status CheckRule(const v1::TrainingJob& job) {
  return BringsUpdate(job) ? absl::OkStatus() : MakeServerRule(job).status();
}

absl::Status CheckInitial(const v1::TrainingJob& job, const JobPlaces& places,
                          const std::string& data_dir, const Model& model) {
  if (!job.model().has_initial()) return absl::OkStatus();
  return places.Place(ReadInitialWeights(job.model(), data_dir, model).status());
}

absl::StatusOr<CheckedJob> CheckJobAndInitial(const PlacedJob& placed,
                                              const std::string& data_dir) {
  ASSIGN_OR_RETURN(CheckedJob checked, CheckJob(placed.job, placed.places, data_dir));
  RETURN_IF_ERROR(CheckInitial(placed.job, placed.places, data_dir, *checked.model));
  return checked;
}

std::string WarningsOf(const v1::TrainingJob& job, const CheckedJob& checked) {
  std::string lines;
  const auto add = [&](const std::string& warning) {
    if (!warning.empty()) absl::StrAppend(&lines, "leeway: ", warning, "\n");
  };
  add(IdleWarning(checked));
  // Ignore an error of reading here, because training reports the error when it reads the batch.
  add(InputWarning(job, checked.data->dataset()).value_or(""));
  return lines;
}

}  // namespace leeway
