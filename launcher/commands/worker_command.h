// The program that workers of an external job run: `leeway train JOB -- COMMAND`, and `leeway
// kubernetes JOB -- COMMAND`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/environment.h"
#include "common/process/process.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// A command line of `leeway`, cut at the first "--" of those two: what is behind it is not for
// leeway to read.
struct SplitCommandLine {
  std::vector<const char*> own;
  // Empty: there is no "--", or nothing behind it.
  std::vector<std::string> command;
};
SplitCommandLine SplitAtCommand(int argc, const char* const* argv);

// INVALID_ARGUMENT unless the job is external and there is a command, or neither. `line`: what
// stands before " -- COMMAND".
absl::Status CheckCommand(const v1::TrainingJob& job, const std::vector<std::string>& command,
                          absl::string_view line = "leeway train JOB");

// What a program of one's own finds in its environment wherever it runs, unless `look_up` finds it
// there already: the number of threads, that Python is not to keep back what it prints, and how
// glibc keeps memory.
Environment ProgramEnvironment(const v1::TrainingJob& job,
                               const EnvironmentLookup& look_up = LookUpEnvironment);
// ProgramEnvironment, the run folder, and the data folder where one was given.
Environment CommandEnvironment(const v1::TrainingJob& job, const std::string& run_dir,
                               const std::string& data_dir,
                               const EnvironmentLookup& look_up = LookUpEnvironment);

}  // namespace leeway
