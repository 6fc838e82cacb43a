// The common part of several commands: the options that go with a job file, and how a command shows
// progress, errors and exit codes.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "config/job.h"

namespace leeway {

// The options --set and --data of commands that have a job file as an argument.
struct JobFlags {
  std::string job_file;
  std::vector<std::string> sets;
  std::string data;
};
void AddSetOption(CLI::App& command, JobFlags& options);
void AddDataOption(CLI::App& command, std::string& data);

// Loads the job. A setting comes from the first of these that has it: --set, the environment, the
// file, the defaults.
absl::StatusOr<PlacedJob> LoadJobWithOptions(const JobFlags& options);

// Accepts a decimal number from `min` to `max`. Unlike CLI::Range, it does not accept NaN.
CLI::Validator NumberIn(double min, double max);

// Shows one line on standard error. The next call overwrites the line, and "" removes it. Does
// nothing if standard error is not a terminal.
void ShowProgress(const std::string& what);

// Writes `document` to `file`, unless `file` is empty. If `done` is an error, adds it to the
// document under the key `error`. Returns `done` if it is an error, else the result of writing.
absl::Status WriteJson(const std::string& file, nlohmann::ordered_json document,
                       const absl::Status& done = absl::OkStatus());

// Prints `status` if it is an error, and returns the exit code. It is 0 for OK, 2 for
// INVALID_ARGUMENT and for ALREADY_EXISTS (the result to be made exists already), 3 for DATA_LOSS
// (a file is damaged), and 1 for other errors.
int ShowResult(const absl::Status& status);

}  // namespace leeway
