#include "common/rpc/tcp_port.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/rpc/handed_connections.h"
#include "common/status.h"

namespace leeway {
namespace {

using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

absl::StatusOr<Found> Resolve(const std::string& address) {
  ASSIGN_OR_RETURN(const HostPort parts, SplitAddress(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(parts.host.c_str(), parts.port.c_str(), &hints, &found);
  if (error == 0) return Found(found, freeaddrinfo);
  return absl::UnavailableError(
      absl::StrCat("the name ", parts.host, " cannot be resolved here: ", gai_strerror(error)));
}

// Returns the port in an address. The port has the same offset in IPv4 and IPv6 addresses.
in_port_t& PortIn(sockaddr_storage& address) {
  return reinterpret_cast<sockaddr_in&>(address).sin_port;
}

// Returns whether the address is 0.0.0.0 or [::]. As in gRPC, both mean all IPv4 and IPv6
// addresses of the host.
bool IsEverywhere(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr == INADDR_ANY;
  }
  return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

sockaddr_storage Everywhere(in_port_t port) {
  sockaddr_storage address{};
  auto& six = reinterpret_cast<sockaddr_in6&>(address);
  six.sin6_family = AF_INET6;
  six.sin6_port = port;
  six.sin6_addr = in6addr_any;
  return address;
}

// Listens on the address. With `both_kinds` an IPv6 socket also accepts IPv4 connections. If the
// result is below 0, errno has the reason.
Descriptor ListenOn(const sockaddr_storage& address, bool both_kinds) {
  const int family = address.ss_family;
  Descriptor made(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1, six_only = both_kinds ? 0 : 1;
  const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const bool listens =
      *made >= 0 && setsockopt(*made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
      (family == AF_INET ||
       setsockopt(*made, IPPROTO_IPV6, IPV6_V6ONLY, &six_only, sizeof(six_only)) == 0) &&
      // Accepted connections inherit these options from the listening socket.
      setsockopt(*made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0 &&
      setsockopt(*made, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnansweredMsMax,
                 sizeof(kUnansweredMsMax)) == 0 &&
      bind(*made, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
      listen(*made, SOMAXCONN) == 0;
  if (listens) return made;
  const int error = errno;
  Descriptor none(-1);
  { const Descriptor closed = std::move(made); }
  errno = error;
  return none;
}

// Returns the numbers of bytes on a connection; 0 means unknown. Reads tcpi_bytes_acked and
// tcpi_bytes_received by their positions in the kernel's tcp_info. The C library's struct does not
// have these fields, and the kernel's header conflicts with the C library's header.
ConnectionTable::Traffic TrafficOf(int socket) {
  constexpr size_t kAcked = 15, kReceived = 16;
  std::array<uint64_t, kReceived + 1> info{};
  socklen_t size = sizeof(info);
  const bool known = getsockopt(socket, IPPROTO_TCP, TCP_INFO, info.data(), &size) == 0;
  if (!known || size != sizeof(info)) return {};
  int queued = 0;
  if (ioctl(socket, SIOCOUTQ, &queued) != 0) queued = 0;
  return {.received = info[kReceived], .sent = info[kAcked] + static_cast<uint64_t>(queued)};
}

// Sets whether the kernel keeps the receive buffer at its initial 64 KiB. Without this, the buffer
// of each stranger's connection would grow to the limit in tcp_rmem, which is megabytes. gRPC would
// read all these bytes even after the connection was ended. Kernels before 5.14 do not have this
// option.
void HoldBack(int connection, bool held) {
  constexpr int kReceiveSide = 2;
  const int sides = held ? kReceiveSide : 0;
  setsockopt(connection, SOL_SOCKET, SO_BUF_LOCK, &sides, sizeof(sides));
}

// Ends the connection at once, drops the bytes that have arrived, and notifies the peer. The owner
// of the descriptor still has to close it. shutdown() is not used: it would keep the connection
// until gRPC has read the bytes, and gRPC reads a header that does not end for minutes.
void Dissolve(int connection) {
  const sockaddr nobody{.sa_family = AF_UNSPEC, .sa_data = {}};
  if (connect(connection, &nobody, sizeof(nobody)) != 0) shutdown(connection, SHUT_RDWR);
}

// Closes the connection and leaves no state of it in the kernel. So the kernel's memory stays
// bounded, however many connections are closed.
void CloseAtOnce(int connection) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close(connection);
}

bool IsGone(int connection) {
  char next = 0;
  const ssize_t there = recv(connection, &next, sizeof(next), MSG_PEEK | MSG_DONTWAIT);
  return there == 0 || (there < 0 && errno != EAGAIN);
}

// Returns the local port of a socket in host byte order, or 0 if it is unknown.
int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(PortIn(address));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpPort>> TcpPort::Listen(const std::string& address) {
  ASSIGN_OR_RETURN(const Found found, Resolve(address));
  std::vector<Descriptor> sockets;
  int error = 0, port = 0;
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    sockaddr_storage end{};
    std::memcpy(&end, each->ai_addr, each->ai_addrlen);
    // If a name has several addresses, use the first address's port for all of them.
    if (port != 0) PortIn(end) = htons(static_cast<uint16_t>(port));
    const bool everywhere = IsEverywhere(end);
    Descriptor socket = ListenOn(everywhere ? Everywhere(PortIn(end)) : end, everywhere);
    // If the system has no IPv6, listen on IPv4 only.
    if (*socket < 0 && everywhere && end.ss_family == AF_INET) {
      Descriptor four = ListenOn(end, false);
      if (*four >= 0) sockets.push_back(std::move(four));
    }
    if (*socket >= 0) sockets.push_back(std::move(socket));
    if (sockets.empty()) error = errno;
    if (port == 0 && !sockets.empty()) port = PortOf(*sockets.front());
  }
  if (!sockets.empty()) {
    return std::unique_ptr<TcpPort>(new TcpPort(std::move(sockets), port));
  }
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address, ": ", strerror(error),
                   "; is the port taken, or is the address not this machine's?"));
}

absl::Status TcpPort::Start(grpc::experimental::ExternalConnectionAcceptor* gate,
                            ConnectionTable* table) {
  watch_ = std::make_unique<TalkerWatch>(table);
  const auto hand_over = [gate, watch = watch_.get()](int connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = connection;
    HoldBack(connection, true);
    watch->Wake();
    gate->HandleNewConnection(&parameters);
  };
  doorway_ = std::make_unique<Doorway>(
      table, Doorway::Sockets{.hand_over = hand_over, .refuse = CloseAtOnce, .is_gone = IsGone});
  const auto come = [doorway = doorway_.get()](int connection) {
    const std::string peer = PeerOf(connection);
    // The peer has no name if it is already gone.
    if (peer.empty()) return CloseAtOnce(connection);
    doorway->Come(connection, peer, SteadyNow());
  };
  const auto look = [doorway = doorway_.get()] { return doorway->Look(SteadyNow()); };
  ASSIGN_OR_RETURN(acceptor_, Acceptor::Start(std::move(sockets_), come, look));
  return absl::OkStatus();
}

std::string PeerOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  char host[INET6_ADDRSTRLEN] = "";
  const int port = ntohs(PortIn(address));
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in&>(address).sin_addr, host, sizeof(host));
    return absl::StrCat("ipv4:", host, ":", port);
  }
  if (address.ss_family != AF_INET6) return "";
  const auto& six = reinterpret_cast<sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
    inet_ntop(AF_INET, six.sin6_addr.s6_addr + 12, host, sizeof(host));
    return absl::StrCat("ipv4:", host, ":", port);
  }
  inet_ntop(AF_INET6, &six.sin6_addr, host, sizeof(host));
  const std::string scope = six.sin6_scope_id == 0 ? "" : absl::StrCat("%25", six.sin6_scope_id);
  return absl::StrCat("ipv6:%5B", host, scope, "%5D:", port);
}

uint64_t FilesMost() {
  rlimit files{};
  return getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 1024;
}

ConnectionTable::Sockets TcpSockets() {
  return {.is_open = [](int socket, const std::string& peer) { return PeerOf(socket) == peer; },
          .end = Dissolve,
          .traffic = TrafficOf,
          .let_in = [](int socket) { HoldBack(socket, false); }};
}

}  // namespace leeway
