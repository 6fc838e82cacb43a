#include "config/topology.h"

namespace leeway {

bool WorkersHoldBlocks(const v1::TrainingJob& job) { return job.topology().has_all_reduce(); }

uint32_t ServersOf(const v1::TrainingJob& job) {
  return WorkersHoldBlocks(job) ? job.workers().count() + 1 : job.servers().count();
}

uint32_t ServerProcessesOf(const v1::TrainingJob& job) {
  return WorkersHoldBlocks(job) ? 1 : job.servers().count();
}

uint32_t FirstHolderOf(const v1::TrainingJob& job) { return WorkersHoldBlocks(job) ? 1 : 0; }

}  // namespace leeway
