// Measures the network between two machines over plain TCP. One machine runs `leeway doctor
// --listen`, and the other machine runs `leeway doctor --peer`. The listening doctor serves the
// other doctor's requests, one connection at a time.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/base/bench_process.h"
#include "bench/raw/raw_socket.h"

namespace leeway {

struct PeerRates {
  // The rate from this machine to the peer, and the rate from the peer, in 1e9 bytes a second.
  double up_gigabytes_per_second = 0;
  double down_gigabytes_per_second = 0;
  // The sum of the rates of both directions, if both are in use at once.
  double both_gigabytes_per_second = 0;
  // The time of a small message and its answer.
  double round_trip_seconds = 0;
};

Json PeerRatesJson(const PeerRates& rates);
PeerRates PeerRatesFrom(const Json& json);

// Serves peers on `address`, HOST:PORT, one at a time. Ends when accepting fails, or after
// `connections` peers if that is not 0. Calls `listening` with the port. Disconnects a peer that
// sends invalid requests or falls silent. Returns the error of the last connection.
absl::Status ServePeers(const std::string& address, uint64_t connections,
                        const std::function<void(int port)>& listening,
                        Duration patience = RawSocket::kPatience);

// Measures the network to the peer. Returns UNAVAILABLE if no process listens at `address`, and
// DEADLINE_EXCEEDED if the peer is silent. Starts threads.
absl::StatusOr<PeerRates> MeasurePeer(const std::string& address, double seconds_each,
                                      Duration patience = RawSocket::kPatience);

}  // namespace leeway
