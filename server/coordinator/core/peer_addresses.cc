#include "server/coordinator/core/peer_addresses.h"

#include "config/topology.h"

namespace leeway {
namespace {

// The number of epochs that a coordinator has for each incarnation that it can give out. A server
// comes and goes a few times in a life of its worker.
constexpr uint64_t kEpochsForEach = 1 << 10;

// Returns the epoch of the present addresses. Two coordinators of a run have no epoch in common,
// because the base of the incarnations rises from one to the next. 0 stands for no addresses.
uint64_t EpochOf(const JobFacts& facts, const ServerFleet& fleet) {
  uint64_t changes = 0;
  for (uint32_t i = 0; i < fleet.table().size(); ++i) changes += fleet.table()[i].changes;
  return facts.options().incarnation_base * kEpochsForEach + 1 + changes;
}

void ListAddresses(const JobFacts& facts, const ServerFleet& fleet, v1::Peers& peers) {
  peers.set_epoch(EpochOf(facts, fleet));
  for (uint32_t rank = 0; rank < facts.job().workers().count(); ++rank) {
    const uint32_t server = ServerOfRank(rank);
    std::string& address = *peers.add_addresses();
    v1::LocalEndpoint& local = *peers.add_local_addresses();
    if (!fleet.table()[server].here()) continue;
    address = fleet.processes()[server].address;
    local = fleet.processes()[server].local;
  }
}

}  // namespace

void FillPeers(const JobFacts& facts, const ServerFleet& fleet, v1::RegisterWorkerReply& reply) {
  if (WorkersFetch(facts.job())) ListAddresses(facts, fleet, *reply.mutable_peers());
}

void FillPeers(const JobFacts& facts, const ServerFleet& fleet, uint64_t known,
               v1::HeartbeatReply& reply) {
  // The epoch that the worker knows may be another coordinator's.
  if (!WorkersFetch(facts.job()) || known == EpochOf(facts, fleet)) return;
  ListAddresses(facts, fleet, *reply.mutable_peers());
}

}  // namespace leeway
