// What a job must hold beyond the shape of its YAML. Usable on any job, also one that came over the
// wire.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// INVALID_ARGUMENT, a line for each fault: "job: update.learning_rate: must be above 0; it is -1".
// A job that passes is complete: every required field is there, every number is finite and within
// its bounds. What only the data can tell (shapes, classes, missing files) is not looked at.
absl::Status ValidateJob(const v1::TrainingJob& job);

// The two halves. Of fields and single messages: makes sense before the job is resolved.
std::vector<Fault> FindFieldFaults(const v1::TrainingJob& job);
// Of how parts of the job go together; the job is resolved and has no faults of the first kind.
std::vector<Fault> FindJobFaults(const v1::TrainingJob& job);
// Of a rule alone, as `update`.
std::vector<Fault> FindUpdateFaults(const v1::Update& update);

}  // namespace leeway
