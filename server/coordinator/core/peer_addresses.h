// Tells workers where the other workers listen, in jobs whose workers fetch from each other
// (WorkersFetch in config/topology.h). A worker listens where the server in its process does.
#pragma once

#include <cstdint>

#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/job_facts.h"
#include "server/coordinator/core/server_fleet.h"

namespace leeway {

// Fills in the address of each worker. It is empty while the server in the worker's process is not
// here. In other jobs the functions fill in nothing.
void FillPeers(const JobFacts& facts, const ServerFleet& fleet, v1::RegisterWorkerReply& reply);
// Does the same if the addresses have changed since `known`, the epoch that the worker knows.
void FillPeers(const JobFacts& facts, const ServerFleet& fleet, uint64_t known,
               v1::HeartbeatReply& reply);

}  // namespace leeway
