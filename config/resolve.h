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
// - If the workers hold the blocks, the number of servers is removed.
// - With topology.type gossip, the update is UpdateOfGossip, the weighting is `equal`, and blocks
//   have two holders if there are two workers. In async mode the graph is removed, and the group
//   unless the graph is `random`. So are values of the topology that are its defaults.
// - A staleness is removed unless the mode is `bounded`.
// - In an external job, the keys for reading data stay absent. In other jobs the types `layers` and
//   `files` stay absent, because they are the usual types.
// Idempotent. Returns INTERNAL if job.proto itself is wrong.
absl::Status ResolveJob(v1::TrainingJob& job);

// Writes the defaults of an update rule alone, as ResolveJob does for the job's rule.
absl::Status ResolveUpdate(v1::Update& update);
// Returns the rule that makes the blocks of a gossip job the mean of all weights: sgd with learning
// rate 1, without the schema's defaults.
v1::Update UpdateOfGossip();

}  // namespace leeway
