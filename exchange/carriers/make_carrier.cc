#include "exchange/carriers/make_carrier.h"

#include <utility>

#include "config/topology.h"
#include "exchange/carriers/gossip_carrier.h"
#include "exchange/carriers/host_group_carrier.h"
#include "exchange/carriers/relay_carrier.h"

namespace leeway {

std::unique_ptr<Carrier> MakeCarrier(Participant& participant, BlockHolder* holder,
                                     std::function<Time()> now) {
  const v1::RegisterWorkerReply& registration = participant.registration();
  ParameterClient& client = participant.client();
  PeerCalls* const peers = participant.peers();
  if (holder == nullptr || peers == nullptr) {
    return MakeServerCarrier(client, participant.group(), std::move(now));
  }
  if (IsGossip(registration.job())) {
    return std::make_unique<GossipCarrier>(registration, client, *peers, holder->outbox(),
                                           holder->meetings(), std::move(now));
  }
  return std::make_unique<RelayCarrier>(registration, client, *peers, holder->outbox(),
                                        std::move(now));
}

}  // namespace leeway
