// The program that workers of an external job run: `leeway train JOB -- COMMAND`, and `leeway
// kubernetes JOB -- COMMAND`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/environment.h"
#include "common/process/process.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// A command line of `leeway`. The command line of `leeway train` and `leeway kubernetes` is cut at
// the first "--". The part after "--" is the command of the workers, which Leeway does not parse.
struct SplitCommandLine {
  std::vector<const char*> own;
  // The part after "--". Empty if there is no such part.
  std::vector<std::string> command;
};
SplitCommandLine SplitAtCommand(int argc, const char* const* argv);

// Returns INVALID_ARGUMENT if an external job has no command, or if another job has one. `line` is
// the text before " -- COMMAND" in the error's advice.
absl::Status CheckCommand(const v1::TrainingJob& job, const std::vector<std::string>& command,
                          absl::string_view line = "leeway train JOB");

// Returns the environment that an external job's program needs on any host: the number of threads,
// unbuffered output of Python, and settings for glibc's allocator. Leaves out variables that are
// set already according to `look_up`.
Environment ProgramEnvironment(const v1::TrainingJob& job,
                               const EnvironmentLookup& look_up = LookUpEnvironment);
// Returns ProgramEnvironment with the run folder and, unless `data_dir` is empty, the data folder.
Environment CommandEnvironment(const v1::TrainingJob& job, const std::string& run_dir,
                               const std::string& data_dir,
                               const EnvironmentLookup& look_up = LookUpEnvironment);

}  // namespace leeway
