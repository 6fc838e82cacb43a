// Prints what a job would do and need: its model, the placement of its blocks, memory and traffic.
#pragma once

#include "absl/status/status.h"
#include "config/job.h"
#include "launcher/plan/checked_job.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Prints to standard output. Warns on standard error if the job needs more memory than this machine
// has.
absl::Status PrintPlan(const v1::TrainingJob& job, const CheckedJob& checked);

// Prints what is known of an external job before its program registers.
absl::Status PrintExternalPlan(const PlacedJob& placed);

}  // namespace leeway
