// Whose contributions a sync clock is made of.
#pragma once

#include "leeway/v1/job.pb.h"

namespace leeway {

// The coordinator says so, clock by clock (docs/consistency.md), because they need not be all:
// consistency.backup_workers, or workers.on_worker_loss: continue, in sync mode.
bool CommitsSets(const v1::TrainingJob& job);

}  // namespace leeway
