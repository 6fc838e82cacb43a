// What a run leaves behind: the model and the part of the summary that needs no test data.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "server/outcome/history.h"
#include "server/outcome/summary.h"
#include "server/outcome/trained_model.h"

namespace leeway {

// Exports the model of the newest valid checkpoint to the run folder, and describes it in the
// summary. Damaged newer checkpoints are listed in the summary's warnings. NOT_FOUND without a
// checkpoint.
absl::StatusOr<TrainedModel> ExportNewest(const std::string& run_dir, RunSummary& summary);

// Adds the job's name and size, and what the metrics say. The number of steps follows from the
// model's clocks, if they determine it. `model` is null if it does not hold the whole training; the
// number then follows from the last clocks of the metrics.
void AddRun(const v1::TrainingJob& job, const std::string& run_dir, const RunHistory& history,
            const TrainedModel* model, RunSummary& summary);

// Adds the test result of the last evaluation in the metrics, if there is one.
void AddLastEvaluation(const RunHistory& history, RunSummary& summary);

absl::Status WriteSummary(const std::string& run_dir, const RunSummary& summary);

struct RunEnd {
  v1::TrainingJob job;
  std::string run_dir;
  // "finished", "stopped" or "failed", and the reason.
  std::string state;
  std::string message;
};
// Writes the model and the summary of a run that has no launcher. The test result is that of the
// last evaluation in the metrics.
absl::Status WriteOutcome(const RunEnd& end);

}  // namespace leeway
