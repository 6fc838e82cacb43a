// Tells whether the coordinator decides which contributions make a sync clock.
#pragma once

#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns true if the coordinator decides for each clock which ranks' contributions count
// (docs/consistency.md). The job needs this in sync mode with consistency.backup_workers, or with
// workers.on_worker_loss: continue, where a clock may lack contributions.
bool CommitsSets(const v1::TrainingJob& job);

}  // namespace leeway
