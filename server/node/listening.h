// Decides on which address a server listens, and which address other processes get.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"

namespace leeway {

struct AddressOptions {
  // The address on which the server listens.
  std::string listen;
  // The port that the server got.
  int port = 0;
  // The address that other processes get. If empty, AddressForOthers finds an address. Port 0
  // stands for the port that the server got.
  std::string advertise;
  // Server 0's address. Empty if this is server 0.
  std::string coordinator;
};
// Returns INVALID_ARGUMENT if the options are not valid addresses, or if no other process could
// reach the server at them.
absl::Status CheckAddresses(const AddressOptions& options);
// Returns the address at which other processes reach the server. If the server listens on every
// address, this is the machine's address on the route to the coordinator. Returns UNAVAILABLE while
// the machine has no such route.
absl::StatusOr<std::string> AddressForOthers(const AddressOptions& options);
// Tries whether the server can listen on the address. Returns UNAVAILABLE if the port is taken or
// the address does not belong to this machine, because both may change.
absl::Status TryToListen(const std::string& listen);

// Repeats `attempt` while it returns UNAVAILABLE. Calls `pause` between two attempts, and stops if
// `pause` returns false. The pauses together take at most `limit`. Returns the result of the last
// attempt, or CANCELLED if `pause` returned false.
absl::Status TryFor(Duration limit, const std::function<bool(Duration)>& pause,
                    const std::function<absl::Status()>& attempt);

}  // namespace leeway
