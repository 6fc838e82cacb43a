#include "tests/whole/wire.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace leeway::testing {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// Binds to the port, which other sockets of this process may have bound. Returns -1 if it is taken.
int Bind(int port) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const sockaddr_in address = Loopback(port);
  if (bind(file, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return file;
  close(file);
  return -1;
}

// The other end sees a reset.
void Reset(int file) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(file, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close(file);
}

void Prepare(int file) {
  const int on = 1;
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// One direction of a connection.
struct Half {
  int from = -1;
  int to = -1;
  std::array<char, 1 << 16> bytes{};
  size_t begin = 0, end = 0;
  // Nothing more comes, and the other end has been told so.
  bool closed = false;

  pollfd Wants() const {
    if (closed) return {.fd = -1, .events = 0, .revents = 0};
    return begin < end ? pollfd{.fd = to, .events = POLLOUT, .revents = 0}
                       : pollfd{.fd = from, .events = POLLIN, .revents = 0};
  }
  // Returns false if the connection is broken.
  bool Pass() {
    if (begin == end) {
      const ssize_t got = recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got < 0) return errno == EAGAIN || errno == EINTR;
      begin = 0;
      end = static_cast<size_t>(got);
      closed = got == 0;
      if (closed) shutdown(to, SHUT_WR);
    }
    if (begin == end) return true;
    const ssize_t sent = send(to, &bytes[begin], end - begin, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    begin += static_cast<size_t>(sent);
    return true;
  }
};

}  // namespace

struct Wire::Link {
  Half there, back;

  bool over() const { return there.closed && back.closed; }

  Link(int client, int server) {
    there.from = back.to = client;
    there.to = back.from = server;
  }
  ~Link() {
    for (const int file : {there.from, there.to}) over() ? void(close(file)) : Reset(file);
  }
  Link(const Link&) = delete;
};

Wire::Wire() : holder_(Bind(0)), wake_(eventfd(0, EFD_CLOEXEC)) {
  sockaddr_in address{};
  socklen_t length = sizeof(address);
  getsockname(holder_, reinterpret_cast<sockaddr*>(&address), &length);
  port_ = ntohs(address.sin_port);
  address_ = absl::StrCat("127.0.0.1:", port_);
  thread_ = std::thread([this] { Run(); });
}

Wire::~Wire() {
  Do([this] {
    Refuse();
    ends_ = true;
  });
  thread_.join();
  close(holder_);
  close(wake_);
}

void Wire::LeadTo(const std::string& address) {
  Do([this, address] {
    target_ = address;
    if (listener_ < 0) Listen();
  });
}

void Wire::Cut() {
  Do([this] { Refuse(); });
}
void Wire::Hold() {
  Do([this] { held_ = true; });
}
void Wire::Release() {
  Do([this] { held_ = false; });
}

void Wire::Do(std::function<void()> action) {
  MutexLock lock(mutex_);
  while (action_) done_.Wait(mutex_);
  action_ = std::move(action);
  eventfd_write(wake_, 1);
  while (action_) done_.Wait(mutex_);
}

void Wire::Listen() {
  listener_ = Bind(port_);
  if (listener_ < 0 || listen(listener_, 64) != 0) std::abort();
}

void Wire::Refuse() {
  if (listener_ >= 0) close(std::exchange(listener_, -1));
  links_.clear();
}

void Wire::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(std::stoi(target_.substr(target_.rfind(':') + 1)));
  if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    close(server);
    return Reset(client);
  }
  Prepare(client);
  Prepare(server);
  links_.emplace_back(client, server);
}

void Wire::Run() {
  while (Step()) {
  }
}

bool Wire::Step() {
  std::vector<pollfd> waits = {{.fd = wake_, .events = POLLIN, .revents = 0},
                               {.fd = held_ ? -1 : listener_, .events = POLLIN, .revents = 0}};
  for (const Link& link : links_) {
    if (held_) break;
    waits.push_back(link.there.Wants());
    waits.push_back(link.back.Wants());
  }
  poll(waits.data(), waits.size(), -1);
  auto ready = waits.begin() + 2;
  for (auto link = links_.begin(); ready != waits.end(); ready += 2) {
    const bool whole = (ready[0].revents == 0 || link->there.Pass()) &&
                       (ready[1].revents == 0 || link->back.Pass());
    link = whole && !link->over() ? std::next(link) : links_.erase(link);
  }
  if (waits[1].revents != 0) Accept();
  if (waits[0].revents == 0) return true;
  eventfd_t count = 0;
  eventfd_read(wake_, &count);
  MutexLock lock(mutex_);
  if (action_) action_();
  action_ = nullptr;
  done_.NotifyAll();
  return !ends_;
}

}  // namespace leeway::testing
