// Checks the values of a job. The job may come from YAML or from another process's message.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns INVALID_ARGUMENT if the job has faults. The message has one line for each: "job:
// update.learning_rate: must be above 0; it is -1". In a valid job every required field is present,
// and every number is finite and within its bounds. Does not look for faults that show only in the
// data itself (shapes, classes, missing files).
absl::Status ValidateJob(const v1::TrainingJob& job);

// The first half of ValidateJob: checks fields and single messages. The job need not be resolved.
std::vector<Fault> FindFieldFaults(const v1::TrainingJob& job);
// Does the second half of ValidateJob: checks that the parts of the job are compatible. The job is
// resolved, and its fields have no faults.
std::vector<Fault> FindJobFaults(const v1::TrainingJob& job);
// Checks an update rule without a job. Paths begin with "update".
std::vector<Fault> FindUpdateFaults(const v1::Update& update);

}  // namespace leeway
