// Writes defaults into a job.
#pragma once

#include "absl/status/status.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Writes every default of the schema, and then the defaults that depend on other fields:
// - If an elastic exchange has no optimizer, the job's `update` becomes its optimizer and is then
//   removed.
// - The alpha of an elastic exchange is 0.9 / workers.count.
// - A pool's stride is its size.
// - With topology.type all_reduce, the number of servers is removed.
// - A staleness is removed unless the mode is `bounded`.
// - In an external job, the keys for reading data stay absent. In other jobs the types `layers` and
//   `files` stay absent, because they are the usual types.
// Idempotent. Returns INTERNAL if job.proto itself is wrong.
absl::Status ResolveJob(v1::TrainingJob& job);

// Writes the defaults of an update rule alone, as ResolveJob does for the job's rule.
absl::Status ResolveUpdate(v1::Update& update);

}  // namespace leeway
