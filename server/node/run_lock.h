// Allows one server 0 for each run folder.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/descriptor.h"

namespace leeway {

// Locks a run folder against every other server 0, until the returned file descriptor is closed.
// The operating system closes it when the process ends, however it ends. Returns UNAVAILABLE while
// another process holds the lock. On a file system without locks the function locks nothing and
// logs a warning.
absl::StatusOr<Descriptor> LockRun(const std::string& run_dir);

}  // namespace leeway
