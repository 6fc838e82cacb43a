#include "server/coordinator/server_watch.h"

#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "common/clock.h"

namespace leeway {
namespace {

constexpr int kConnectMsMax = 1000;
// The pause in milliseconds after an attempt that got no answer, or whose connection was lost at
// once.
constexpr int kPauseMs = 100;
constexpr Duration kBrief = std::chrono::seconds(1);
constexpr int kAskEverySeconds = 1;
constexpr int kUnansweredMax = 5;

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// Returns null if the address is not a host:port, or its name cannot be resolved now.
Addresses Resolve(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  const bool good =
      colon != std::string::npos && absl::SimpleAtoi(address.substr(colon + 1), &port);
  if (!good || port == 0 || port > 65535) return {nullptr, freeaddrinfo};
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found) != 0) found = nullptr;
  return {found, freeaddrinfo};
}

void AskOften(int socket) {
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &kAskEverySeconds, sizeof kAskEverySeconds);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &kAskEverySeconds, sizeof kAskEverySeconds);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &kUnansweredMax, sizeof kUnansweredMax);
}

// Returns the result of connect(): 0, or an errno.
int ErrorOf(int socket) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

// Reads and ignores the bytes that gRPC sends on every new connection. Returns false if the
// connection was closed.
bool PassOver(int socket) {
  char bytes[4096];
  const ssize_t count = recv(socket, bytes, sizeof bytes, 0);
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace

ServerWatch::ServerWatch(std::string address, std::function<void()> on_gone)
    : address_(std::move(address)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      on_gone_(std::move(on_gone)),
      thread_([this] { Run(); }) {}

ServerWatch::~ServerWatch() {
  Stop();
  thread_.join();
  close(wake_);
}

void ServerWatch::Stop() {
  {
    MutexLock lock(mutex_);
    on_gone_ = nullptr;
  }
  eventfd_write(wake_, 1);
}

bool ServerWatch::over() const {
  MutexLock lock(mutex_);
  return over_;
}

void ServerWatch::Run() {
  if (Watch() == Seen::kRefused) Report();
  MutexLock lock(mutex_);
  over_ = true;
}

void ServerWatch::Report() {
  MutexLock lock(mutex_);
  if (on_gone_) std::exchange(on_gone_, nullptr)();
}

ServerWatch::Seen ServerWatch::Watch() {
  Addresses addresses(nullptr, freeaddrinfo);
  while (true) {
    if (addresses == nullptr) addresses = Resolve(address_);
    const Time begun = std::chrono::steady_clock::now();
    bool held = false;
    const Seen seen = HoldAny(addresses.get(), held);
    if (seen != Seen::kUnknown) return seen;
    // If the connection lasted longer than kBrief, the next one is tried at once.
    if (held && std::chrono::steady_clock::now() - begun > kBrief) continue;
    bool stopped = false;
    Wait(-1, 0, kPauseMs, stopped);
    if (stopped) return Seen::kStopped;
  }
}

ServerWatch::Seen ServerWatch::HoldAny(const addrinfo* addresses, bool& held) {
  bool refused = addresses != nullptr;
  for (const addrinfo* each = addresses; each != nullptr && !held; each = each->ai_next) {
    const int socket = ::socket(each->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    AskOften(socket);
    const int error = connect(socket, each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
    Seen seen = error == ECONNREFUSED ? Seen::kRefused : Seen::kUnknown;
    if (error == 0 || error == EINPROGRESS) seen = Hold(socket, held);
    close(socket);
    if (seen == Seen::kStopped) return seen;
    refused &= seen == Seen::kRefused;
  }
  return refused ? Seen::kRefused : Seen::kUnknown;
}

ServerWatch::Seen ServerWatch::Hold(int socket, bool& held) {
  bool stopped = false;
  const bool answered = Wait(socket, POLLOUT, kConnectMsMax, stopped);
  if (stopped) return Seen::kStopped;
  const int error = answered ? ErrorOf(socket) : ETIMEDOUT;
  if (error != 0) return error == ECONNREFUSED ? Seen::kRefused : Seen::kUnknown;
  held = true;
  do {
    Wait(socket, POLLIN, -1, stopped);
    if (stopped) return Seen::kStopped;
  } while (PassOver(socket));
  return Seen::kUnknown;
}

bool ServerWatch::Wait(int file, short events, int ms, bool& stopped) const {
  pollfd files[2] = {{wake_, POLLIN, 0}, {file, events, 0}};
  const int ready = poll(files, 2, ms);
  stopped = ready > 0 && files[0].revents != 0;
  return ready > 0 && files[1].revents != 0;
}

}  // namespace leeway
