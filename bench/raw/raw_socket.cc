#include "bench/raw/raw_socket.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/local_sockets.h"
#include "common/status.h"

namespace leeway {
namespace {

absl::Status SocketError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", strerror(errno)));
}

// Advances the message by the bytes that a call has sent or received.
void Advance(msghdr& message, size_t bytes) {
  while (message.msg_iovlen > 0 && bytes >= message.msg_iov->iov_len) {
    bytes -= message.msg_iov->iov_len;
    ++message.msg_iov;
    --message.msg_iovlen;
  }
  if (message.msg_iovlen == 0) return;
  message.msg_iov->iov_base = static_cast<char*>(message.msg_iov->iov_base) + bytes;
  message.msg_iov->iov_len -= bytes;
}

struct Where {
  std::string host;
  std::string port;
};

// Returns true for a valid port. Refuses numbers above 65535, because the operating system would
// use them modulo 65536.
bool IsPort(const std::string& text, int least) {
  int port = 0;
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  return digits && absl::SimpleAtoi(text, &port) && port >= least && port <= 65535;
}

// Splits "host:port" or "[::1]:port".
absl::StatusOr<Where> Split(const std::string& address, int least_port) {
  const size_t colon = address.rfind(':');
  Where where;
  if (colon != std::string::npos) {
    where = {address.substr(0, colon), address.substr(colon + 1)};
    const bool brackets =
        where.host.size() > 2 && where.host.front() == '[' && where.host.back() == ']';
    if (brackets) where.host = where.host.substr(1, where.host.size() - 2);
    const bool one_host = brackets || where.host.find(':') == std::string::npos;
    if (one_host && IsPort(where.port, least_port)) return where;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", address, "': needs HOST:PORT, or [IPV6]:PORT, with a port from ",
                   least_port, " to 65535"));
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<Addresses> Resolve(const std::string& address, bool to_listen) {
  // Port 0 means any free port.
  ASSIGN_OR_RETURN(const Where where, Split(address, to_listen ? 0 : 1));
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = to_listen ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(where.host.c_str(), where.port.c_str(), &hints, &found);
  if (error == 0 && found != nullptr) return Addresses(found, freeaddrinfo);
  return absl::InvalidArgumentError(absl::StrCat(address, ": ", gai_strerror(error)));
}

// Tries `use` (bind or connect, which returns true on success) on a socket for each address in
// turn. Returns the first socket that works, which the caller closes, or the last address's error.
template <typename Use>
absl::StatusOr<int> OnAnyOf(const Addresses& addresses, const std::string& doing, Use use) {
  absl::Status failure;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    const int fd = socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && use(fd, *each)) return fd;
    // With these errors connect() reports that the time of SO_SNDTIMEO has passed.
    failure = errno == EINPROGRESS || errno == EAGAIN
                  ? absl::DeadlineExceededError(absl::StrCat(doing, ": no answer"))
                  : SocketError(doing);
    if (fd >= 0) close(fd);
  }
  return failure;
}

void BePatient(int fd, Duration patience) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(patience).count();
  const timeval limit{.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

std::string NameOfPeer(const sockaddr_storage& name, socklen_t size) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&name), size, host, sizeof(host),
                                port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
  return error == 0 ? absl::StrCat(host, ":", port) : "a peer without a name";
}

void SendAtOnce(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // Tune the socket like Leeway's own, because the limit is what the machine can do.
  StopPacing(fd);
}

}  // namespace

RawSocket& RawSocket::operator=(RawSocket&& other) noexcept {
  if (this == &other) return *this;
  if (fd_ >= 0) close(fd_);
  fd_ = std::exchange(other.fd_, -1);
  peer_ = std::move(other.peer_);
  partial_bytes_ = 0;
  return *this;
}

RawSocket::~RawSocket() {
  if (fd_ >= 0) close(fd_);
}

void RawSocket::Shutdown() { shutdown(fd_, SHUT_RDWR); }

absl::StatusOr<Descriptor> ListenTcp(const std::string& address, int* port) {
  ASSIGN_OR_RETURN(const Addresses addresses, Resolve(address, true));
  const std::string doing = absl::StrCat("listening on ", address);
  ASSIGN_OR_RETURN(const int fd, OnAnyOf(addresses, doing, [](int fd, const addrinfo& where) {
                     const int on = 1;
                     setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
                     return bind(fd, where.ai_addr, where.ai_addrlen) == 0 && listen(fd, 64) == 0;
                   }));
  Descriptor listener(fd);
  sockaddr_storage name{};
  socklen_t size = sizeof(name);
  if (getsockname(*listener, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    return SocketError(doing);
  }
  *port = ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(name).sin_port);
  return listener;
}

absl::StatusOr<RawSocket> AcceptTcp(const Descriptor& listener, Duration patience) {
  sockaddr_storage name{};
  socklen_t size = sizeof(name);
  int fd;
  do {
    size = sizeof(name);
    fd = accept4(*listener, reinterpret_cast<sockaddr*>(&name), &size, SOCK_CLOEXEC);
    // ECONNABORTED: the peer went away before it was accepted.
  } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
  if (fd < 0) return SocketError("accepting a connection");
  SendAtOnce(fd);
  BePatient(fd, patience);
  return RawSocket(fd, NameOfPeer(name, size));
}

absl::StatusOr<RawSocket> RawSocket::Connect(const std::string& address, Duration patience) {
  ASSIGN_OR_RETURN(const Addresses addresses, Resolve(address, false));
  ASSIGN_OR_RETURN(const int fd, OnAnyOf(addresses, absl::StrCat("connecting to ", address),
                                         [&](int fd, const addrinfo& where) {
                                           BePatient(fd, patience);
                                           return connect(fd, where.ai_addr, where.ai_addrlen) == 0;
                                         }));
  SendAtOnce(fd);
  return RawSocket(fd, address);
}

absl::Status RawSocket::Failure(absl::string_view doing) const {
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    return absl::DeadlineExceededError(absl::StrCat(doing, " ", peer_, ": timed out"));
  }
  return SocketError(absl::StrCat(doing, " ", peer_));
}

template <typename Transfer>
absl::Status RawSocket::MoveAll(void* header, void* payload, size_t payload_bytes,
                                absl::string_view doing, Transfer transfer) const {
  iovec parts[2] = {{header, sizeof(RawHeader)}, {payload, payload_bytes}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = payload_bytes > 0 ? 2 : 1;
  while (message.msg_iovlen > 0) {
    const ssize_t moved = transfer(&message);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return Failure(doing);
    if (moved == 0)
      return absl::UnavailableError(
          absl::StrCat(doing, " ", peer_, ": the peer has closed the connection"));
    Advance(message, static_cast<size_t>(moved));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::pair<RawSocket, RawSocket>> RawSocket::TcpPair() {
  int port = 0;
  ASSIGN_OR_RETURN(const Descriptor listener, ListenTcp("127.0.0.1:0", &port));
  auto client = Connect(absl::StrCat("127.0.0.1:", port));
  auto server = client.ok() ? AcceptTcp(listener) : client.status();
  RETURN_IF_ERROR(server.status());
  return std::make_pair(*std::move(client), *std::move(server));
}

absl::StatusOr<std::pair<RawSocket, RawSocket>> RawSocket::UnixPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return SocketError("socketpair");
  }
  return std::make_pair(RawSocket(ends[0], "the other end"), RawSocket(ends[1], "the other end"));
}

absl::Status RawSocket::Send(const RawHeader& header, std::span<const float> payload) {
  // The const_casts are safe, because sendmsg only reads the message.
  return MoveAll(const_cast<RawHeader*>(&header), const_cast<float*>(payload.data()),
                 payload.size_bytes(), "sending to",
                 [this](msghdr* message) { return sendmsg(fd_, message, MSG_NOSIGNAL); });
}

absl::Status RawSocket::Receive(RawHeader& header, std::span<float> payload) {
  return MoveAll(&header, payload.data(), payload.size_bytes(), "receiving from",
                 [this](msghdr* message) { return recvmsg(fd_, message, MSG_WAITALL); });
}

absl::StatusOr<RawSocket::Headers> RawSocket::ReceiveHeaders() {
  alignas(RawHeader) char buffer[64 * sizeof(RawHeader)];
  Headers headers;
  while (headers.count == 0) {
    std::memcpy(buffer, partial_, partial_bytes_);
    const ssize_t got = recv(fd_, buffer + partial_bytes_, sizeof(buffer) - partial_bytes_, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failure("receiving from");
    if (got == 0)
      return absl::UnavailableError(
          absl::StrCat("receiving from ", peer_, ": the peer has closed the connection"));
    const size_t bytes = partial_bytes_ + static_cast<size_t>(got);
    headers.count = bytes / sizeof(RawHeader);
    partial_bytes_ = bytes % sizeof(RawHeader);
    std::memcpy(partial_, buffer + bytes - partial_bytes_, partial_bytes_);
    if (headers.count == 0) continue;
    RawHeader last;
    std::memcpy(&last, buffer + (headers.count - 1) * sizeof(RawHeader), sizeof(last));
    headers.last_kind = last.kind;
  }
  return headers;
}

}  // namespace leeway
