// Addresses on which servers listen, and which they give to others: HOST:PORT. An IPv6 HOST is in
// brackets.
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
// INVALID_ARGUMENT if it is no address.
absl::StatusOr<HostPort> SplitAddress(const std::string& address);
// INVALID_ARGUMENT if nobody can connect there: no address, or one of port 0.
absl::Status CheckAddressToReach(const std::string& address);

// Which processes reach a server at an address.
enum class Reach {
  // No other host: a server may listen on 0.0.0.0 and [::], but a client that connects to them
  // reaches itself.
  kNobody,
  // Processes of its own host: 127.0.0.0/8, [::1], localhost.
  kOwnHost,
  // Everybody, as far as one can tell.
  kAnybody,
};
// Looks nothing up.
Reach ReachOf(const HostPort& address);
// Nothing: `host` is a name.
std::optional<Reach> ReachOfNumber(const std::string& host);

}  // namespace leeway
