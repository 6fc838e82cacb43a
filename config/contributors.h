// Whether the coordinator decides which contributions make a sync clock.
#pragma once

#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns true if the coordinator commits, clock by clock, the set of ranks whose contributions
// count (docs/consistency.md). It does so if not all contributions may count: in sync mode with
// consistency.backup_workers, or with workers.on_worker_loss: continue.
bool CommitsSets(const v1::TrainingJob& job);

}  // namespace leeway
