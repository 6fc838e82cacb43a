// Checks that the rest of the job goes with workers that hold the blocks (topology).
#pragma once

#include <vector>

#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Adds a fault for each key that does not go with the topology, with the reason and what to change.
// The job is resolved, and its fields are valid. Its workers hold the blocks.
void CheckTopology(const v1::TrainingJob& job, std::vector<Fault>& faults);

// Adds a fault for topology.group without graph: random. The job need not be resolved, because the
// resolved job has no such key.
void CheckGroup(const v1::Topology& topology, std::vector<Fault>& faults);

}  // namespace leeway
