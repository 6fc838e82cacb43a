// Addresses on which servers listen, and which they announce to other processes. The form is
// HOST:PORT. An IPv6 HOST is in brackets.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace leeway {

struct HostPort {
  // Has no brackets, even if it is an IPv6 address.
  std::string host;
  std::string port;
};
// Returns INVALID_ARGUMENT if `address` is not an address.
absl::StatusOr<HostPort> SplitAddress(const std::string& address);
// Returns INVALID_ARGUMENT if no client can connect to the address, because its form is wrong or
// its port is 0.
absl::Status CheckAddressToReach(const std::string& address);

// Says which processes can reach a server at an address.
enum class Reach {
  // No other host can connect to these addresses: 0.0.0.0 and [::]. A server may listen on them. A
  // client that connects to them reaches its own host.
  kNobody,
  // Only processes of the server's own host: 127.0.0.0/8, [::1], localhost.
  kOwnHost,
  // Processes of any host, as far as the address shows.
  kAnybody,
};
// Returns which processes can reach a server at `address`. Does not resolve names.
Reach ReachOf(const HostPort& address);
// Does the same as ReachOf for an IP address without brackets. Returns nothing if `host` is a name.
std::optional<Reach> ReachOfNumber(const std::string& host);

}  // namespace leeway
