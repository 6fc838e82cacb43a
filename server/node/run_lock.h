// Allows one server 0 for each run folder.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/descriptor.h"

namespace leeway {

// Keeps other servers 0 away from a run folder, whatever address they listen on, until the
// descriptor is closed. The system closes it when the process ends in any way. UNAVAILABLE while
// another process holds the lock. On a file system without locks nothing is locked, and the log
// says so.
absl::StatusOr<Descriptor> LockRun(const std::string& run_dir);

}  // namespace leeway
