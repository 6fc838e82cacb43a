// Addresses at which servers listen, and which they give to other processes: HOST:PORT. An IPv6
// HOST is in brackets.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace leeway {

struct HostPort {
  // Without brackets.
  std::string host;
  std::string port;
};
// INVALID_ARGUMENT if `address` is not an address.
absl::StatusOr<HostPort> SplitAddress(const std::string& address);
// INVALID_ARGUMENT if no client can connect to the address: its form is wrong, or its port is 0.
absl::Status CheckAddressToReach(const std::string& address);

// Which processes can reach a server at an address.
enum class Reach {
  // No other host: a server may listen on 0.0.0.0 and [::], but a client that connects to them
  // reaches itself.
  kNobody,
  // Processes of its own host: 127.0.0.0/8, [::1], localhost.
  kOwnHost,
  // All processes, as far as the address tells.
  kAnybody,
};
// Does not resolve names.
Reach ReachOf(const HostPort& address);
// Returns nothing if `host` is a name.
std::optional<Reach> ReachOfNumber(const std::string& host);

}  // namespace leeway
