#include "config/topology.h"

namespace leeway {

bool WorkersHoldBlocks(const v1::TrainingJob& job) { return job.topology().has_all_reduce(); }

uint32_t ServersOf(const v1::TrainingJob& job) {
  return WorkersHoldBlocks(job) ? job.workers().count() + 1 : job.servers().count();
}

uint32_t ServerProcessesOf(const v1::TrainingJob& job) {
  return WorkersHoldBlocks(job) ? 1 : job.servers().count();
}

v1::TrainingJob WithServers(const v1::TrainingJob& job) {
  v1::TrainingJob equal = job;
  if (!WorkersHoldBlocks(job)) return equal;
  equal.clear_topology();
  equal.mutable_servers()->set_count(job.workers().count());
  return equal;
}

uint32_t FirstHolderOf(const v1::TrainingJob& job) { return WorkersHoldBlocks(job) ? 1 : 0; }

}  // namespace leeway
