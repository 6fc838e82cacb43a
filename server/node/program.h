// The program leeway-server: one server of a training job; number 0 hosts the coordinator too.
#pragma once

namespace leeway {

// Returns the process's exit code (common/exit_code.h).
int RunServer(int argc, char** argv);

}  // namespace leeway
