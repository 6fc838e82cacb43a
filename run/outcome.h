// Writes the results of a run: the model, and the part of the summary that needs no test data.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "run/history.h"
#include "run/summary.h"
#include "run/trained_model.h"

namespace leeway {

// Exports the model of the newest valid checkpoint to the run folder, and describes it in the
// summary. Damaged newer checkpoints are listed in the summary's warnings. Returns NOT_FOUND if
// there is no checkpoint.
absl::StatusOr<TrainedModel> ExportNewest(const std::string& run_dir, RunSummary& summary);

// Adds the job's name and size, and the figures of the metrics. Computes the number of steps from
// the model's clocks, if they determine this number. `model` is null if the model does not include
// the whole training; the number is then computed from the last clocks in the metrics.
void AddRun(const v1::TrainingJob& job, const std::string& run_dir, const RunHistory& history,
            const TrainedModel* model, RunSummary& summary);

// Adds the test result of the last evaluation in the metrics, if there is one.
void AddLastEvaluation(const RunHistory& history, RunSummary& summary);

// Write and read the run's summary.json. Reading returns NOT_FOUND if the run has no summary yet.
absl::Status WriteSummary(const std::string& run_dir, const RunSummary& summary);
absl::StatusOr<RunSummary> ReadSummary(const std::string& run_dir);

struct RunEnd {
  v1::TrainingJob job;
  std::string run_dir;
  // "finished", "stopped" or "failed".
  std::string state;
  // Why the run ended, if there is a reason to give.
  std::string message;
};
// Writes the model and the summary of a run that has no launcher. The test result comes from the
// last evaluation in the metrics.
absl::Status WriteOutcome(const RunEnd& end);

}  // namespace leeway
