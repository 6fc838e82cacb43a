// Decides who says which contributions make a sync clock.
#pragma once

#include "leeway/v1/job.pb.h"

namespace leeway {

// True if the coordinator says so, clock by clock (docs/consistency.md), because not all
// contributions may count. In sync mode that is with consistency.backup_workers, or with
// workers.on_worker_loss: continue.
bool CommitsSets(const v1::TrainingJob& job);

}  // namespace leeway
