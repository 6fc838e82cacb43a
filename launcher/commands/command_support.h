// What several commands share: the job file with its overrides, the data folder, how errors are
// shown.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "config/job.h"

namespace leeway {

// --set and --data, on the commands that take a job file.
struct JobOptions {
  std::string job_file;
  std::vector<std::string> sets;
  std::string data;
};
void AddSetOption(CLI::App& command, JobOptions& options);
void AddDataOption(CLI::App& command, std::string& data);

// Defaults < file < environment < --set.
absl::StatusOr<PlacedJob> LoadJobWithOptions(const JobOptions& options);

// The data folder as an absolute path: `option` (--data), else LEEWAY_DATA, else the first that is
// there of ./data, data beside the job file or beside its folder, and the installed one. A job that
// reads no files gets this folder where none of them is there. NOT_FOUND says what was looked at.
absl::StatusOr<std::string> FindDataFolder(const std::string& option, const std::string& job_file,
                                           const v1::TrainingJob& job);

// Where a running job's launcher leaves what other commands look for: the folder `target`, or of
// s3://BUCKET/PREFIX the folder on this machine that it has by default (PlaceOfRun).
absl::StatusOr<std::string> FolderHere(const std::string& target);
// Where the coordinator is: `target` itself, HOST:PORT, or as the run folder `target` says for as
// long as its job runs (FolderHere). NOT_FOUND: none runs there, or none that leeway train started.
// INVALID_ARGUMENT: it is neither, or the host is not known.
absl::StatusOr<std::string> FindCoordinator(const std::string& target);

// What a message about `target`, which is not there, ends with: the runs that are in ./runs. Empty
// without any.
std::string RunsHere(const std::string& target);

// Calls `ask` until the coordinator at `address`, as FindCoordinator has said of `target`, answers,
// also while it is just coming back, and says once that it does not. UNAVAILABLE at once where
// `target` is a run folder whose launcher has gone: nobody starts anything there again.
absl::Status AskUntilHeard(const std::string& target, const std::string& address, Time deadline,
                           const std::function<absl::Status()>& ask);
// Nobody answers there, where the run folder `target` says that the job runs.
absl::Status NobodyAnswers(const std::string& target, const std::string& address);
bool IsSilence(const absl::Status& status);

// A decimal number from `min` to `max`; not NaN, which CLI::Range lets pass.
CLI::Validator NumberIn(double min, double max);

// One line on a terminal's standard error, which the next one overwrites; "" ends it. Nothing where
// that is no terminal.
void ShowProgress(const std::string& what);

// Prints the error, if it is one, and gives the exit code: 2 for INVALID_ARGUMENT and for
// ALREADY_EXISTS (what is to be made is there), 3 for DATA_LOSS (a file is damaged), else 1.
int ShowResult(const absl::Status& status);

}  // namespace leeway
