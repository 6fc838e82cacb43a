// What a job must hold beyond the shape of its YAML. It works for any job, also for one that came
// over the wire.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// INVALID_ARGUMENT with a line for each fault: "job: update.learning_rate: must be above 0; it is
// -1". A job that passes is complete: every required field is there, and every number is finite and
// within its bounds. Faults that only the data can show (shapes, classes, missing files) are not
// checked.
absl::Status ValidateJob(const v1::TrainingJob& job);

// The two halves. This one checks fields and single messages. The job need not be resolved.
std::vector<Fault> FindFieldFaults(const v1::TrainingJob& job);
// This one checks how parts of the job go together. The job is resolved, and its fields have no
// faults.
std::vector<Fault> FindJobFaults(const v1::TrainingJob& job);
// Checks a rule alone, as `update`.
std::vector<Fault> FindUpdateFaults(const v1::Update& update);

}  // namespace leeway
