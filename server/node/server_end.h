// How the process of a server ends: its exit code, and what it reports.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

struct ServerEnd {
  // The exit code of the process, as common/exit_code.h defines it.
  int exit_code = 0;
  // The error, if something failed.
  absl::Status status;
};

// Returns the end of a server that could not join the job, with the error `joined`.
ServerEnd EndOf(const absl::Status& joined);
// Returns the end of a server whose job has ended with `outcome`. `message` is the cause of a
// failure.
ServerEnd EndOf(v1::JobState outcome, const std::string& message);
// Returns the end of server 0 after its job has failed. `message` is the cause. `record` is the
// job's newest record, or null if it is not known.
ServerEnd EndOfFailed(const std::string& message, const v1::CoordinatorRecord* record);

}  // namespace leeway
