#include "config/topology.h"

namespace leeway {

bool WorkersHoldBlocks(const v1::TrainingJob& job) {
  return job.topology().has_all_reduce() || job.topology().has_gossip();
}

bool SumsTravel(const v1::TrainingJob& job) {
  const v1::Topology& topology = job.topology();
  return topology.has_all_reduce() &&
         topology.all_reduce().algorithm() != v1::ALL_REDUCE_ALGORITHM_DIRECT;
}

bool WorkersFetch(const v1::TrainingJob& job) { return SumsTravel(job) || IsGossip(job); }

bool IsGossip(const v1::TrainingJob& job) { return job.topology().has_gossip(); }

uint64_t MeanEvery(const v1::TrainingJob& job) {
  return IsGossip(job) ? job.topology().gossip().mean_every() : 1;
}

const char* TopologyType(const v1::TrainingJob& job) {
  if (job.topology().has_all_reduce()) return "all_reduce";
  return job.topology().has_gossip() ? "gossip" : "servers";
}

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
