// Which address a server listens on, and which address other processes are told.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"

namespace leeway {

struct AddressOptions {
  // The address on which the server listens, and the port that it got.
  std::string listen;
  int port = 0;
  // The address that other processes are told. Empty: it must be found out. Port 0 stands for the
  // port that the server got.
  std::string advertise;
  // Server 0's address; empty: this is server 0.
  std::string coordinator;
};
// INVALID_ARGUMENT if these are not addresses, or if no other process could reach the server there.
absl::Status CheckAddresses(const AddressOptions& options);
// The address at which other processes reach the server. If it listens on every address, this is
// its address on the route to the coordinator; UNAVAILABLE while the machine has no such route.
absl::StatusOr<std::string> AddressForOthers(const AddressOptions& options);
// UNAVAILABLE if the port is taken or the address does not belong to this machine. Both may change.
absl::Status TryToListen(const std::string& listen);

// Repeats `attempt` while it returns UNAVAILABLE. Calls `pause` between two attempts (false: stop);
// the pauses together take at most `limit`. Returns the result of the last attempt, or CANCELLED if
// it was stopped.
absl::Status TryFor(Duration limit, const std::function<bool(Duration)>& pause,
                    const std::function<absl::Status()>& attempt);

}  // namespace leeway
