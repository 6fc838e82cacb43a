#include "config/contributors.h"

namespace leeway {

bool CommitsSets(const v1::TrainingJob& job) {
  if (job.consistency().mode() != v1::CONSISTENCY_MODE_SYNC) return false;
  return job.consistency().backup_workers() > 0 ||
         job.workers().on_worker_loss() == v1::WORKER_LOSS_CONTINUE;
}

}  // namespace leeway
