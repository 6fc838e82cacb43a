#include "run/outcome.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/sha256.h"
#include "common/files/temporary_folder.h"
#include "common/object_store/address.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "config/topology.h"
#include "run/run_folder.h"
#include "run/steps.h"
#include "server/checkpoint/coordinator_record.h"

namespace leeway {
namespace {

constexpr uint64_t kSummaryBytesMax = 16 << 20;

// Returns the number of steps in an epoch, or 0 if it is not known.
uint64_t StepsPerEpoch(const std::string& run_dir) {
  const auto record = ReadCoordinatorRecord(run_dir);
  return record.ok() && record->has_value() ? (*record)->steps_per_epoch() : 0;
}

std::vector<uint64_t> LastClocks(const RunHistory& history, uint32_t workers) {
  std::vector<uint64_t> clocks(workers);
  for (const RunHistory::Step& step : history.steps) {
    if (step.rank < workers) clocks[step.rank] = step.metrics.clock();
  }
  return clocks;
}

// Corrects the steps by the clocks of `model`, or of the history.
void CorrectSteps(const v1::TrainingJob& job, const std::string& run_dir, const RunHistory& history,
                  const TrainedModel* model, RunSummary& summary) {
  if (history.mixed) return;
  if (model != nullptr && model->manifest.has_data()) {
    return SetSteps(BatchesOf(model->manifest.data()), history, summary);
  }
  StartPoint start;
  if (model != nullptr) {
    const v1::JobLength& length = model->manifest.length();
    start = {length.first_clock(), length.first_step()};
  }
  auto steps = StepsOfClocks(
      job, StepsPerEpoch(run_dir),
      model != nullptr ? model->clocks : LastClocks(history, summary.job.workers), start);
  if (steps.has_value()) SetSteps(*std::move(steps), history, summary);
}

// Exports the weights to a location in any kind of storage.
absl::Status ExportTo(const TrainedModel& model, std::span<const float> weights,
                      const std::string& location) {
  if (!IsObjectLocation(location)) return ExportModel(model, weights, location);
  ASSIGN_OR_RETURN(const auto folder, TemporaryFolder::Make("leeway-model"));
  const std::string path = absl::StrCat(folder->path(), "/", kModelFile);
  RETURN_IF_ERROR(ExportModel(model, weights, path));
  return CopyStored(path, location);
}

// Writes the weights and, if the model has it, their moving average. If the model has no average,
// removes the file that an earlier start of the run may have written.
absl::Status WriteModelFiles(const TrainedModel& model, const std::string& run_dir) {
  const std::string average = absl::StrCat(run_dir, "/", kAverageModelFile);
  RETURN_IF_ERROR(ExportTo(model, model.weights.span(), absl::StrCat(run_dir, "/", kModelFile)));
  if (model.average.has_value()) return ExportTo(model, model.average->span(), average);
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(average));
  return storage->RemoveFile(average);
}

}  // namespace

absl::StatusOr<TrainedModel> ExportNewest(const std::string& run_dir, RunSummary& summary) {
  absl::StatusOr<TrainedModel> model = LoadTrainedModel(run_dir);
  RETURN_IF_ERROR(Annotate(model.status(), "reading the trained model"));
  for (const std::string& damaged : model->passed_over) {
    summary.warnings.push_back(absl::StrCat(
        damaged, "; the model comes from the older checkpoint at clock ", model->manifest.clock()));
  }
  summary.model = {model->manifest.schema().total(), model->manifest.clock(),
                   WeightsSha256(model->weights.span())};
  RETURN_IF_ERROR(Annotate(WriteModelFiles(*model, run_dir), "exporting the trained model"));
  return model;
}

void AddRun(const v1::TrainingJob& job, const std::string& run_dir, const RunHistory& history,
            const TrainedModel* model, RunSummary& summary) {
  summary.job = {job.metadata().name(), ServerProcessesOf(job), job.workers().count()};
  AddHistory(history, summary);
  CorrectSteps(job, run_dir, history, model, summary);
  if (history.steps.empty() && summary.total.steps() > 0) {
    summary.warnings.push_back(
        "metrics.jsonl has no steps of this run, so seconds, bytes and times are not known");
  }
  // List a worker that did nothing, too.
  std::vector<uint64_t>& steps = summary.by_rank.steps;
  steps.resize(std::max<size_t>(steps.size(), summary.job.workers));
}

void AddLastEvaluation(const RunHistory& history, RunSummary& summary) {
  if (!history.evaluations.empty()) summary.test = TestResult{history.evaluations.back()};
}

absl::Status WriteSummary(const std::string& run_dir, const RunSummary& summary) {
  return WriteStored(absl::StrCat(run_dir, "/", kSummaryFile), SummaryJson(summary));
}

absl::StatusOr<RunSummary> ReadSummary(const std::string& run_dir) {
  const std::string file = absl::StrCat(run_dir, "/", kSummaryFile);
  ASSIGN_OR_RETURN(const std::string json, ReadStored(file, kSummaryBytesMax));
  return ParseSummary(json, file);
}

absl::Status WriteOutcome(const RunEnd& end) {
  RunSummary summary;
  summary.state = end.state;
  summary.message = end.message;
  const auto model = ExportNewest(end.run_dir, summary);
  const RunHistory history = ReadHistory(absl::StrCat(end.run_dir, "/", kMetricsFile));
  const bool whole = model.ok() && model->passed_over.empty() && end.state != "failed";
  AddRun(end.job, end.run_dir, history, whole ? &*model : nullptr, summary);
  AddLastEvaluation(history, summary);
  // A run that failed or was stopped early may have no model.
  const bool none = absl::IsNotFound(model.status()) && end.state != "finished";
  const absl::Status exported = none ? absl::OkStatus() : model.status();
  if (!exported.ok()) summary.warnings.emplace_back(exported.message());
  RETURN_IF_ERROR(WriteSummary(end.run_dir, summary));
  return exported;
}

}  // namespace leeway
