// What a run leaves behind when it is over: the model and its summary, as far as that needs no test
// data.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "server/outcome/history.h"
#include "server/outcome/summary.h"
#include "server/outcome/trained_model.h"

namespace leeway {

// Exports the model of the newest checkpoint that verifies to the run folder, and describes it in
// the summary. Damaged newer checkpoints go into the summary's warnings. NOT_FOUND if there is no
// checkpoint.
absl::StatusOr<TrainedModel> ExportNewest(const std::string& run_dir, RunSummary& summary);

// The job's name and size, and what the metrics say. Steps follow from the model's clocks, if these
// determine them. `model` is null if it does not hold all that was trained; then steps follow from
// the last clocks of the metrics.
void AddRun(const v1::TrainingJob& job, const std::string& run_dir, const RunHistory& history,
            const TrainedModel* model, RunSummary& summary);

// The test result of the last evaluation in the metrics, if there is any.
void AddLastEvaluation(const RunHistory& history, RunSummary& summary);

absl::Status WriteSummary(const std::string& run_dir, const RunSummary& summary);

struct RunEnd {
  v1::TrainingJob job;
  std::string run_dir;
  // finished, stopped or failed, and why.
  std::string state;
  std::string message;
};
// Writes both files of a run without a launcher. The test result is that of the last evaluation in
// the metrics.
absl::Status WriteOutcome(const RunEnd& end);

}  // namespace leeway
