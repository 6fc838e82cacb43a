// What a run leaves behind when its processes have ended: the model, its test result, summary and
// report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/commands/run_folder.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/job.pb.h"
#include "server/outcome/history.h"
#include "server/outcome/summary.h"

namespace leeway {

struct FinishInput {
  v1::TrainingJob job;
  // A folder, or s3://BUCKET/PREFIX.
  std::string run_dir;
  std::string data_dir;
  // How the coordinator has ended the job, by its record (coordinator.json); absent if it has not.
  std::optional<v1::CoordinatorRecord> end;
  // Why the launcher counts the run as failed; empty if it does not.
  std::string failure;
  bool stop_requested = false;
  // By rank, and by index.
  std::vector<uint32_t> worker_restarts;
  std::vector<uint32_t> server_restarts;
};

// Exports the newest checkpoint's model, evaluates it, and writes summary.json, curves.svg and
// report.html, in this order: what of the metrics cannot be read, or of the report not be written,
// is a warning in the summary. Works with what is there: a run that failed before its first
// checkpoint has a summary and a report too. An error of the export, of the evaluation or of
// writing the summary makes the run a failed one and is in its message.
RunSummary FinishRun(const FinishInput& input);

// What `leeway train` exits with (common/exit_code.h). `failure`: where the run has failed, and its
// coordinator has not said whether for good.
int ExitCodeOf(const RunSummary& summary, const std::optional<v1::CoordinatorRecord>& end,
               int failure);

// The run's summary.json; NOT_FOUND if it has none yet.
absl::StatusOr<RunSummary> ReadSummary(const std::string& run_dir);

// Writes curves.svg and report.html anew from what the run folder holds.
absl::Status WriteReport(const std::string& run_dir, const v1::TrainingJob& job,
                         const RunHistory& history, const RunSummary& summary);

// "bounded staleness 3, gradient exchange, sgd".
std::string DescribeAlgorithm(const v1::TrainingJob& job);

// The result for a person: figures, places, and how to go on. `data`: the folder that --data named;
// empty where it was found without, as it will be again. `command`: of an external job's workers.
std::string DescribeOutcome(const RunSummary& summary, const RunPlace& place,
                            const std::string& data, const std::vector<std::string>& command = {});

}  // namespace leeway
