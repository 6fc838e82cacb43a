#include "server/node/listening.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include <netdb.h>
#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/address.h"
#include "common/backoff.h"
#include "common/descriptor.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr Duration kPauseMin = std::chrono::milliseconds(50);
constexpr Duration kPauseMax = std::chrono::seconds(2);

using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

absl::StatusOr<Found> Resolve(const HostPort& address, int type) {
  addrinfo hints{};
  hints.ai_socktype = type;
  hints.ai_flags = AI_NUMERICSERV | (type == SOCK_STREAM ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
  if (error == 0) return Found(found, freeaddrinfo);
  return absl::UnavailableError(absl::StrCat("this machine cannot resolve the name ", address.host,
                                             ": ", gai_strerror(error)));
}

std::string Write(const sockaddr* address, socklen_t size, int port) {
  char host[NI_MAXHOST] = "";
  getnameinfo(address, size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  const bool six = address->sa_family == AF_INET6;
  return absl::StrCat(six ? "[" : "", host, six ? "]" : "", ":", port);
}

Descriptor SocketFor(const addrinfo& address) {
  return Descriptor(socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, 0));
}

// Returns this machine's address on the route to `target`. Sends nothing.
absl::StatusOr<std::string> RouteTo(const std::string& target, int port) {
  ASSIGN_OR_RETURN(const HostPort parts, SplitAddress(target));
  ASSIGN_OR_RETURN(const Found found, Resolve(parts, SOCK_DGRAM));
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    const Descriptor made = SocketFor(*each);
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    const bool routed = *made >= 0 && connect(*made, each->ai_addr, each->ai_addrlen) == 0 &&
                        getsockname(*made, reinterpret_cast<sockaddr*>(&own), &size) == 0;
    if (routed) return Write(reinterpret_cast<const sockaddr*>(&own), size, port);
  }
  return absl::UnavailableError(absl::StrCat("this machine has no route to ", target));
}

}  // namespace

absl::Status CheckAddresses(const AddressOptions& options) {
  const auto listen = SplitAddress(options.listen);
  RETURN_IF_ERROR(Annotate(listen.status(), "--listen"));
  const bool everywhere = ReachOf(*listen) == Reach::kNobody;
  if (options.advertise.empty() && everywhere && options.coordinator.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen ", options.listen, " accepts connections on every address of this machine, so ",
        "other processes cannot know at which address to reach server 0: add --advertise "
        "HOST:PORT, or listen on one address"));
  }
  if (options.advertise.empty()) return absl::OkStatus();
  const auto advertise = SplitAddress(options.advertise);
  RETURN_IF_ERROR(Annotate(advertise.status(), "--advertise"));
  if (ReachOf(*advertise) != Reach::kNobody) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--advertise ", options.advertise, ": other processes would look for this ",
                   "server on their own machines; specify an address of this machine"));
}

absl::StatusOr<std::string> AddressForOthers(const AddressOptions& options) {
  RETURN_IF_ERROR(CheckAddresses(options));
  const bool given = !options.advertise.empty();
  const std::string& wanted = given ? options.advertise : options.listen;
  ASSIGN_OR_RETURN(HostPort parts, SplitAddress(wanted));
  const std::string bound = absl::StrCat(wanted.substr(0, wanted.rfind(':')), ":", options.port);
  if (given) return parts.port == "0" ? bound : wanted;
  if (ReachOf(parts) == Reach::kNobody) return RouteTo(options.coordinator, options.port);
  // Use a numeric address as it is, but not a name: on this machine its own name may resolve to a
  // loopback address (127.0.1.1 on Debian), and elsewhere to another address.
  if (ReachOfNumber(parts.host).has_value()) return bound;
  parts.port = std::to_string(options.port);
  ASSIGN_OR_RETURN(const Found found, Resolve(parts, SOCK_STREAM));
  const std::string number = Write(found->ai_addr, found->ai_addrlen, options.port);
  ASSIGN_OR_RETURN(const HostPort meant, SplitAddress(number));
  return ReachOf(meant) == Reach::kOwnHost ? number : bound;
}

absl::Status TryToListen(const std::string& address) {
  ASSIGN_OR_RETURN(const HostPort parts, SplitAddress(address));
  ASSIGN_OR_RETURN(const Found found, Resolve(parts, SOCK_STREAM));
  int error = 0;
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    const Descriptor made = SocketFor(*each);
    const int yes = 1;
    // gRPC sets this option, too. With it, connections of an earlier process do not block the port.
    setsockopt(*made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(*made, each->ai_addr, each->ai_addrlen) == 0 && listen(*made, 1) == 0) {
      return absl::OkStatus();
    }
    error = errno;
  }
  const std::string why = absl::StrCat("cannot listen on ", address, ": ", strerror(error));
  if (error == EACCES) return absl::PermissionDeniedError(why);
  return absl::UnavailableError(
      absl::StrCat(why, "; is the port taken, or is the address not this machine's?"));
}

absl::Status TryFor(Duration limit, const std::function<bool(Duration)>& pause,
                    const std::function<absl::Status()>& attempt) {
  Backoff backoff(kPauseMin, kPauseMax);
  Duration paused{};
  while (true) {
    const absl::Status status = attempt();
    if (!absl::IsUnavailable(status)) return status;
    if (paused >= limit) {
      return Annotate(status,
                      absl::StrFormat("given up after %.3g s (--start-seconds)", Seconds(limit)));
    }
    if (paused == Duration::zero()) {
      spdlog::warn("{}; trying for {:.3g} s", std::string(status.message()), Seconds(limit));
    }
    const Duration next = std::min(backoff.Next(), limit - paused);
    if (!pause(next)) return absl::CancelledError("stopped by a signal");
    paused += next;
  }
}

}  // namespace leeway
