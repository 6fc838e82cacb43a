#include "deploy/bench/raw_socket.h"

#include <cerrno>
#include <cstring>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace leeway {
namespace {

absl::Status SystemError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", strerror(errno)));
}

// Moves `parts` on by what a call has sent or received.
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

// Calls `transfer` until all of header and payload has gone through.
template <typename Transfer>
absl::Status MoveAll(void* header, void* payload, size_t payload_bytes, absl::string_view what,
                     Transfer transfer) {
  iovec parts[2] = {{header, sizeof(RawHeader)}, {payload, payload_bytes}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = payload_bytes > 0 ? 2 : 1;
  while (message.msg_iovlen > 0) {
    const ssize_t moved = transfer(&message);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return SystemError(what);
    if (moved == 0) return absl::UnavailableError("raw socket: the peer has gone");
    Advance(message, static_cast<size_t>(moved));
  }
  return absl::OkStatus();
}

absl::StatusOr<addrinfo*> Resolve(const std::string& address, bool to_listen) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(address, ": HOST:PORT is wanted"));
  }
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = to_listen ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const std::string host = address.substr(0, colon);
  const int error = getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found);
  if (error == 0 && found != nullptr) return found;
  return absl::InvalidArgumentError(absl::StrCat(address, ": ", gai_strerror(error)));
}

void SendAtOnce(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

RawSocket& RawSocket::operator=(RawSocket&& other) noexcept {
  if (this == &other) return *this;
  if (fd_ >= 0) close(fd_);
  fd_ = std::exchange(other.fd_, -1);
  partial_bytes_ = 0;
  return *this;
}

RawSocket::~RawSocket() {
  if (fd_ >= 0) close(fd_);
}

void RawSocket::Shutdown() { shutdown(fd_, SHUT_RDWR); }

absl::StatusOr<int> ListenTcp(const std::string& address, int* port) {
  ASSIGN_OR_RETURN(addrinfo* const where, Resolve(address, true));
  const int fd = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool bound =
      fd >= 0 && bind(fd, where->ai_addr, where->ai_addrlen) == 0 && listen(fd, 64) == 0;
  freeaddrinfo(where);
  sockaddr_storage name{};
  socklen_t size = sizeof(name);
  if (!bound || getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    absl::Status status = SystemError(absl::StrCat("listening on ", address));
    if (fd >= 0) close(fd);
    return status;
  }
  *port = ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(name).sin_port);
  return fd;
}

absl::StatusOr<RawSocket> AcceptTcp(int listener) {
  int fd;
  do {
    fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return SystemError("accepting a connection");
  SendAtOnce(fd);
  return RawSocket(fd);
}

absl::StatusOr<RawSocket> RawSocket::Connect(const std::string& address) {
  ASSIGN_OR_RETURN(addrinfo* const where, Resolve(address, false));
  RawSocket result(socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool connected =
      result.fd_ >= 0 && connect(result.fd_, where->ai_addr, where->ai_addrlen) == 0;
  freeaddrinfo(where);
  if (!connected) return SystemError(absl::StrCat("connecting to ", address));
  SendAtOnce(result.fd_);
  return result;
}

absl::StatusOr<std::pair<RawSocket, RawSocket>> RawSocket::TcpPair() {
  int port = 0;
  ASSIGN_OR_RETURN(const int listener, ListenTcp("127.0.0.1:0", &port));
  auto client = Connect(absl::StrCat("127.0.0.1:", port));
  auto server = client.ok() ? AcceptTcp(listener) : client.status();
  close(listener);
  RETURN_IF_ERROR(server.status());
  return std::make_pair(*std::move(client), *std::move(server));
}

absl::StatusOr<std::pair<RawSocket, RawSocket>> RawSocket::UnixPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return SystemError("socketpair");
  }
  return std::make_pair(RawSocket(ends[0]), RawSocket(ends[1]));
}

absl::Status RawSocket::Send(const RawHeader& header, std::span<const float> payload) {
  // sendmsg does not write through iov_base.
  return MoveAll(const_cast<RawHeader*>(&header), const_cast<float*>(payload.data()),
                 payload.size_bytes(), "raw socket: sending",
                 [this](msghdr* message) { return sendmsg(fd_, message, MSG_NOSIGNAL); });
}

absl::Status RawSocket::Receive(RawHeader& header, std::span<float> payload) {
  return MoveAll(&header, payload.data(), payload.size_bytes(), "raw socket: receiving",
                 [this](msghdr* message) { return recvmsg(fd_, message, MSG_WAITALL); });
}

absl::StatusOr<RawSocket::Headers> RawSocket::ReceiveHeaders() {
  alignas(RawHeader) char buffer[64 * sizeof(RawHeader)];
  Headers headers;
  while (headers.count == 0) {
    std::memcpy(buffer, partial_, partial_bytes_);
    const ssize_t got = recv(fd_, buffer + partial_bytes_, sizeof(buffer) - partial_bytes_, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError("raw socket: receiving");
    if (got == 0) return absl::UnavailableError("raw socket: the peer has gone");
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
