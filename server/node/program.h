// The program leeway-server: one server of a training job. Server 0 also hosts the coordinator.
#pragma once

namespace leeway {

// Returns the process's exit code (common/exit_code.h).
int RunServer(int argc, char** argv);

}  // namespace leeway
