// The program leeway-worker: one worker of a training job.
#pragma once

namespace leeway {

// Returns the process's exit code (common/exit_code.h).
int RunWorkerProgram(int argc, char** argv);

}  // namespace leeway
