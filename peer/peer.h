// The server in a worker's process, for jobs in which the workers hold the blocks. It is a server
// like any other. In a direct all-reduce the servers together do a reduce-scatter and an
// all-gather: each adds up all contributions to its own blocks, updates them, and answers all
// ranks. In the other topologies of workers it also answers what this worker publishes
// (server/peers/piece_store.h), and meets other workers (server/peers/meeting_store.h).
#pragma once

#include <string>

#include "client/participant/block_holder.h"

namespace leeway {

struct PeerListening {
  // HOST:PORT to bind; port 0 stands for any free port. If empty, the server binds a loopback
  // address if server 0 has one, and otherwise every address of this machine.
  std::string listen;
  // The address at which the other workers reach this server. If empty, it is the bound address, or
  // this machine's address on the route to server 0.
  std::string advertise;
  // Whether to listen on an address that other machines reach, without asking for certificates.
  bool insecure = false;
};

// Fills the unset fields of `listening` from LEEWAY_LISTEN, LEEWAY_ADVERTISE and LEEWAY_INSECURE.
PeerListening CompletedFromEnvironment(PeerListening listening);

// Starts the server of a rank.
absl::StatusOr<std::unique_ptr<BlockHolder>> StartPeer(const PeerListening& listening,
                                                       const HolderPlace& place);

}  // namespace leeway
