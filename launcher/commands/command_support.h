// Functions that several commands share. They load the job file with its overrides, find the data
// folder and the coordinator, and show errors.
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

// The options --set and --data of commands that have a job file as an argument.
struct JobOptions {
  std::string job_file;
  std::vector<std::string> sets;
  std::string data;
};
void AddSetOption(CLI::App& command, JobOptions& options);
void AddDataOption(CLI::App& command, std::string& data);

// Loads the job. A setting in --set overrides one in the environment, which overrides one in the
// file, which overrides the default.
absl::StatusOr<PlacedJob> LoadJobWithOptions(const JobOptions& options);

// Returns the data folder as an absolute path or an s3:// location: `option` (--data), else
// LEEWAY_DATA. Without both, returns the first folder that exists of ./data, `data` beside the job
// file, `data` beside the job file's folder, and the installed data folder. If none exists and the
// job reads no files in it, returns the current folder. Otherwise returns NOT_FOUND, which names
// the folders that were tried.
absl::StatusOr<std::string> FindDataFolder(const std::string& option, const std::string& job_file,
                                           const v1::TrainingJob& job);

// Returns the folder on this machine in which a running job's launcher leaves files for other
// commands. It is the folder `target`, or for s3://BUCKET/PREFIX the default folder (PlaceOfRun).
absl::StatusOr<std::string> FolderHere(const std::string& target);
// Returns the address of the coordinator. If `target` is HOST:PORT, this is `target`. If `target`
// is a run folder (FolderHere), the address is in a file there while the job runs. Returns
// NOT_FOUND if no job that leeway train started runs there. Returns INVALID_ARGUMENT if `target` is
// neither a folder nor an address, or if its host is not known.
absl::StatusOr<std::string> FindCoordinator(const std::string& target);

// Returns the end of a message that says that `target` does not exist: a similar name among the
// runs in ./runs, or else the latest of these runs. Empty if there are no runs.
std::string RunsHere(const std::string& target);

// Calls `ask` until the coordinator answers or `deadline` is near, for example while the
// coordinator restarts. Prints once that there is no answer yet. `address` is the result of
// FindCoordinator for `target`. Returns UNAVAILABLE at once if `target` is a run folder whose
// launcher has ended, because then nothing restarts the coordinator.
absl::Status AskUntilHeard(const std::string& target, const std::string& address, Time deadline,
                           const std::function<absl::Status()>& ask);
// Returns the error that the coordinator does not answer at `address`, although the run folder
// `target` says that the job runs there.
absl::Status NobodyAnswers(const std::string& target, const std::string& address);
// Returns whether `status` means that the coordinator did not answer.
bool IsSilence(const absl::Status& status);

// Accepts a decimal number from `min` to `max`. Unlike CLI::Range, it does not accept NaN.
CLI::Validator NumberIn(double min, double max);

// Shows one line on standard error. The next call overwrites the line, and "" removes it. Does
// nothing if standard error is not a terminal.
void ShowProgress(const std::string& what);

// Prints `status` if it is an error, and returns the exit code. It is 0 for OK, 2 for
// INVALID_ARGUMENT and for ALREADY_EXISTS (the result to be made exists already), 3 for DATA_LOSS
// (a file is damaged), and 1 for other errors.
int ShowResult(const absl::Status& status);

}  // namespace leeway
