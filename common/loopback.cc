#include "common/loopback.h"

#include <cerrno>
#include <cstring>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/descriptor.h"

namespace leeway {
namespace {

// The time limit for a connection. A connection within one machine waits for the scheduler only.
constexpr int kConnectMsMax = 2000;

struct Loopback {
  sockaddr_storage address{};
  socklen_t size = 0;
};

Loopback Four() {
  Loopback loopback{.address = {}, .size = sizeof(sockaddr_in)};
  auto& four = reinterpret_cast<sockaddr_in&>(loopback.address);
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return loopback;
}

Loopback Six() {
  Loopback loopback{.address = {}, .size = sizeof(sockaddr_in6)};
  auto& six = reinterpret_cast<sockaddr_in6&>(loopback.address);
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_loopback;
  return loopback;
}

// Returns a socket bound to any free port of the address. On failure returns -1 and sets errno.
Descriptor BoundTo(const Loopback& loopback) {
  Descriptor bound(
      socket(loopback.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (*bound < 0) return bound;
  if (bind(*bound, reinterpret_cast<const sockaddr*>(&loopback.address), loopback.size) == 0) {
    return bound;
  }
  return Descriptor(-1);
}

// Returns the errno of a connection to the address, or 0 if the connection works.
int ErrorOfConnecting(Loopback loopback) {
  const Descriptor listening = BoundTo(loopback);
  auto* const address = reinterpret_cast<sockaddr*>(&loopback.address);
  if (*listening < 0 || listen(*listening, 1) != 0 ||
      getsockname(*listening, address, &loopback.size) != 0) {
    return errno;
  }
  const Descriptor caller(
      socket(loopback.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (*caller < 0) return errno;
  if (connect(*caller, address, loopback.size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd made{*caller, POLLOUT, 0};
  if (poll(&made, 1, kConnectMsMax) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(*caller, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

std::string LoopbackHost() { return *BoundTo(Four()) >= 0 ? "127.0.0.1" : "[::1]"; }

absl::Status CheckLoopback(const std::string& address) {
  const absl::StatusOr<HostPort> parts = SplitAddress(address);
  if (!parts.ok() || ReachOf(*parts) != Reach::kOwnHost) return absl::OkStatus();
  const bool six = parts->host.find(':') != std::string::npos;
  const int error = ErrorOfConnecting(six ? Six() : Four());
  if (error == 0) return absl::OkStatus();
  // A name such as localhost may have only an IPv6 address.
  const bool is_name = !ReachOfNumber(parts->host).has_value();
  if (is_name && ErrorOfConnecting(Six()) == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("processes of this machine cannot reach each other at ", parts->host, ": ",
                   strerror(error), "; is its loopback interface up (ip link set lo up)?"));
}

}  // namespace leeway
