// The network between two machines, on bare TCP: `leeway doctor --listen` on one, `--peer` on the
// other. The listening doctor does what the other one requests, one connection at a time.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/base/bench_process.h"
#include "bench/raw/raw_socket.h"

namespace leeway {

struct PeerRates {
  // From this machine to the peer, and back, in 1e9 bytes a second.
  double up_gigabytes_per_second = 0;
  double down_gigabytes_per_second = 0;
  // The sum of both directions at once.
  double both_gigabytes_per_second = 0;
  // The time of a message of some bytes and its answer.
  double round_trip_seconds = 0;
};

Json PeerRatesJson(const PeerRates& rates);
PeerRates PeerRatesFrom(const Json& json);

// Serves peers on host:port, one at a time, until accepting fails, or after `connections` of them
// (0: forever). `listening` gets the port. A peer that sends invalid requests or falls silent is
// disconnected. Returns the error of the last one.
absl::Status ServePeers(const std::string& address, uint64_t connections,
                        const std::function<void(int port)>& listening,
                        Duration patience = RawSocket::kPatience);

// UNAVAILABLE: nobody listens there. DEADLINE_EXCEEDED: the peer is silent. Starts threads.
absl::StatusOr<PeerRates> MeasurePeer(const std::string& address, double seconds_each,
                                      Duration patience = RawSocket::kPatience);

}  // namespace leeway
