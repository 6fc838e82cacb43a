// Where a server listens, and where others are told that it is.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"

namespace leeway {

struct AddressOptions {
  // Where the server listens, and the port that it has got.
  std::string listen;
  int port = 0;
  // What others are to be told; empty: to be found out. Port 0: the one that it has got.
  std::string advertise;
  // Of server 0; empty: this is server 0.
  std::string coordinator;
};
// INVALID_ARGUMENT: no addresses, or nobody could reach the server there.
absl::Status CheckAddresses(const AddressOptions& options);
// Where others reach the server. If it listens on every address, that is the one of the route to
// the coordinator; UNAVAILABLE while there is none.
absl::StatusOr<std::string> AddressForOthers(const AddressOptions& options);
// UNAVAILABLE: the port is taken, or the address not this machine's; for now.
absl::Status TryToListen(const std::string& listen);

// Makes attempts until one is not UNAVAILABLE, with `pause` (false: stop) between them, which take
// no longer than `limit` together. The last one's result; CANCELLED if it was stopped.
absl::Status TryFor(Duration limit, const std::function<bool(Duration)>& pause,
                    const std::function<absl::Status()>& attempt);

}  // namespace leeway
