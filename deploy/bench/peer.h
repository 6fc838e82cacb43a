// The network between two machines, on bare TCP: `leeway doctor --listen` on one, `--peer` on the
// other. The doctor who listens does what the other asks for, one connection at a time.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leeway {

struct PeerRates {
  // From here to the peer, and back: 1e9 bytes a second.
  double up_gigabytes_per_second = 0;
  double down_gigabytes_per_second = 0;
  // Both at once, added.
  double both_gigabytes_per_second = 0;
  // Of some bytes.
  double round_trip_seconds = 0;
};

// Serves peers on host:port until accepting fails, or after `connections` of them (0: for ever).
// `listening` is told the port. A peer that asks for nonsense is turned away.
absl::Status ServePeers(const std::string& address, uint64_t connections,
                        const std::function<void(int port)>& listening);

// UNAVAILABLE if nobody listens there.
absl::StatusOr<PeerRates> MeasurePeer(const std::string& address, double seconds_each);

}  // namespace leeway
