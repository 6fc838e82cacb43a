// Writes the results of a run after its processes have ended: the model, its test result, the
// summary and the report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/job.pb.h"
#include "run/history.h"
#include "run/summary.h"

namespace leeway {

struct FinishInput {
  v1::TrainingJob job;
  // The run folder: a folder, or s3://BUCKET/PREFIX.
  std::string run_dir;
  std::string data_dir;
  // How the coordinator ended the job, from its record (coordinator.json). Absent if the
  // coordinator has not ended the job.
  std::optional<v1::CoordinatorRecord> end;
  // Why the launcher considers the run failed. Empty if the run did not fail.
  std::string failure;
  bool stop_requested = false;
  // The number of restarts of each worker, by rank, and of each server, by index.
  std::vector<uint32_t> worker_restarts;
  std::vector<uint32_t> server_restarts;
};

// Exports the newest checkpoint's model, evaluates it, and writes summary.json, curves.svg and
// report.html, in this order. If the metrics cannot be read or the report cannot be written, the
// summary has a warning. A run that failed before its first checkpoint gets a summary and a report,
// too. If the export, the evaluation or writing the summary fails, the run counts as failed, and
// the summary's message has the error.
RunSummary FinishRun(const FinishInput& input);

// Returns the exit code of `leeway train` (common/exit_code.h). `failure` is the code for a failed
// run whose coordinator has not recorded whether the failure is permanent.
int ExitCodeOf(const RunSummary& summary, const std::optional<v1::CoordinatorRecord>& end,
               int failure);

// Writes curves.svg and report.html again from the files in the run folder.
absl::Status WriteReport(const std::string& run_dir, const v1::TrainingJob& job,
                         const RunHistory& history, const RunSummary& summary);

}  // namespace leeway
