// One server 0 a run folder.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/descriptor.h"

namespace leeway {

// Keeps other servers 0, wherever they listen, from a run folder until the descriptor is closed, as
// it is however the process ends. UNAVAILABLE while another process holds it. A file system without
// locks keeps nobody out; the log says so.
absl::StatusOr<Descriptor> LockRun(const std::string& run_dir);

}  // namespace leeway
