// Against sockets of this process: what the end of a connection says about the process at its other
// end.
#include "server/coordinator/server_watch.h"

#include <chrono>
#include <future>
#include <string>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/catch.h"

namespace leeway::server_watch {
namespace {

constexpr auto kSoon = std::chrono::seconds(20);

// A listening socket on loopback.
class Listener {
 public:
  explicit Listener(uint16_t port = 0) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    REQUIRE(bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(socket_, 16) == 0);
    socklen_t length = sizeof address;
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { Close(); }
  Listener(const Listener&) = delete;

  void Close() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }
  // Waits for the next connection.
  int Accept() {
    pollfd file{socket_, POLLIN, 0};
    REQUIRE(poll(&file, 1, 20'000) == 1);
    return accept(socket_, nullptr, nullptr);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int socket_;
  uint16_t port_ = 0;
};

// Resets, as the system does with the sockets of a process that was killed with something unread.
void Reset(int socket) {
  const linger now{1, 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(socket);
}

class Watched {
 public:
  explicit Watched(const std::string& address)
      : watch(address, [this] {
          ++times;
          gone.set_value();
        }) {}
  bool Gone() { return gone.get_future().wait_for(kSoon) == std::future_status::ready; }

  std::promise<void> gone;
  int times = 0;
  ServerWatch watch;
};

TEST_CASE("a process that ends is seen to be gone, cut or closed") {
  const bool cut = GENERATE(true, false);
  Listener listener;
  Watched watched(listener.address());
  const int connection = listener.Accept();
  listener.Close();
  cut ? Reset(connection) : static_cast<void>(close(connection));
  CHECK(watched.Gone());
  watched.watch.Stop();
  CHECK(watched.times == 1);
}

TEST_CASE("an address at which nobody listens is that of a process that is gone") {
  Listener listener;
  const std::string address = listener.address();
  listener.Close();
  Watched watched(address);
  CHECK(watched.Gone());
}

TEST_CASE("who cuts connections and takes others is there, so is who says something") {
  Listener listener;
  Watched watched(listener.address());
  for (int i = 0; i < 4; ++i) {
    const int connection = listener.Accept();
    CHECK(send(connection, "SETTINGS", 8, MSG_NOSIGNAL) == 8);
    i % 2 == 0 ? Reset(connection) : static_cast<void>(close(connection));
  }
  const int last = listener.Accept();
  watched.watch.Stop();
  CHECK(watched.times == 0);
  close(last);
}

TEST_CASE("an address that is none, or a name that nobody knows, says nothing") {
  for (const char* address : {"", "nowhere", "127.0.0.1:", "127.0.0.1:x", "name.invalid:1"}) {
    Watched watched(address);
    watched.watch.Stop();
    CHECK(watched.times == 0);
  }
}

TEST_CASE("a watch that was stopped says nothing any more") {
  Listener listener;
  Watched watched(listener.address());
  const int connection = listener.Accept();
  watched.watch.Stop();
  listener.Close();
  Reset(connection);
  CHECK(watched.times == 0);
}

}  // namespace
}  // namespace leeway::server_watch
