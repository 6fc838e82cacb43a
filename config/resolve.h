// Defaults, written into the job.
#pragma once

#include "absl/status/status.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Writes every default of the schema, and then those that depend on other fields:
// - an elastic exchange without an optimizer takes the job's `update`, which is then removed;
// - its alpha is 0.9 / workers.count;
// - a pool's stride is its size;
// - a staleness beside another mode than `bounded` is removed;
// - what an external job does not have stays away (how its data is read), and so do the types
//   `layers` and `files`, which other jobs have without saying so.
// Idempotent. INTERNAL if job.proto itself is at fault.
absl::Status ResolveJob(v1::TrainingJob& job);

// Writes the defaults of an update rule alone, as ResolveJob does for the job's.
absl::Status ResolveUpdate(v1::Update& update);

}  // namespace leeway
