#include "common/rpc/local_sockets.h"

#include <cstddef>
#include <cstring>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/catch.h"
#include "tests/skip.h"
#include "tests/sockets.h"

namespace leeway::local_sockets {
namespace {

// Two ends of a connection in this process, over an abstract address.
struct Connection {
  explicit Connection(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const auto* where = reinterpret_cast<const sockaddr*>(&address);
    REQUIRE(bind(listener, where, length) == 0);
    REQUIRE(listen(listener, 1) == 0);
    REQUIRE(connect(client, where, length) == 0);
    server = accept(listener, nullptr, nullptr);
    REQUIRE(server >= 0);
  }
  ~Connection() {
    for (const int socket : {listener, client, server}) close(socket);
  }
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  const int client = socket(AF_UNIX, SOCK_STREAM, 0);
  int server = -1;
};

using testing::SendBytesOf;

TEST_CASE("a local address is new each time, and none that a file stands for") {
  const std::string address = NewLocalAddress();
  CHECK(address.rfind("unix-abstract:leeway-", 0) == 0);
  CHECK(NewLocalAddress() != address);
}

TEST_CASE("both ends of a connection over a local address are widened, and no other socket is") {
  const std::string scheme = "unix-abstract:";
  const Connection ours(NewLocalAddress().substr(scheme.size()));
  const Connection others("other-" + NewLocalAddress().substr(scheme.size()));
  const int before = SendBytesOf(others.client);
  TuneLocalSockets("unix-abstract:leeway-whatever");
  TuneLocalSockets("unix-abstract:leeway-whatever");
  CHECK(SendBytesOf(ours.client) > before);
  CHECK(SendBytesOf(ours.server) == SendBytesOf(ours.client));
  CHECK(SendBytesOf(others.client) == before);
  CHECK(SendBytesOf(others.server) == before);
}

// Two ends of a TCP connection in this process, from one address of this host to another one.
struct TcpConnection {
  TcpConnection(const char* from, const char* to) {
    sockaddr_in here = Address(from), there = Address(to);
    socklen_t length = sizeof(there);
    REQUIRE(bind(listener, Name(there), length) == 0);
    REQUIRE(listen(listener, 8) == 0);
    REQUIRE(getsockname(listener, Name(there), &length) == 0);
    REQUIRE(bind(client, Name(here), length) == 0);
    REQUIRE(connect(client, Name(there), length) == 0);
    server = accept(listener, nullptr, nullptr);
    REQUIRE(server >= 0);
    port = ntohs(there.sin_port);
  }
  ~TcpConnection() {
    for (const int socket : {listener, client, server}) close(socket);
  }
  std::string peer() const { return "ipv4:127.0.0.1:" + std::to_string(port); }

  static sockaddr* Name(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }
  static sockaddr_in Address(const char* host) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    REQUIRE(inet_pton(AF_INET, host, &address.sin_addr) == 1);
    return address;
  }

  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  int server = -1;
  int port = 0;
};

using testing::CongestionControlOf;
using testing::SetCongestionControl;

TEST_CASE("a TCP connection within one host does without pacing, and no other one") {
  const TcpConnection asked("127.0.0.1", "127.0.0.1"), others("127.0.0.1", "127.0.0.1");
  // A connection as if between hosts.
  const TcpConnection far("127.0.0.2", "127.0.0.1");
  for (const TcpConnection* connection : {&asked, &others, &far}) {
    for (const int socket : {connection->client, connection->server}) {
      if (SetCongestionControl(socket, "bbr")) continue;
      SKIP("this system has no BBR, or does not permit it");
    }
  }
  TuneLocalSockets(asked.peer());
  CHECK(CongestionControlOf(asked.client) == "reno");
  // Its peer has another port.
  CHECK(CongestionControlOf(asked.server) == "bbr");
  StopPacing(asked.server);
  CHECK(CongestionControlOf(asked.server) == "reno");
  TuneLocalSockets(far.peer());
  CHECK(CongestionControlOf(far.client) == "bbr");
  StopPacing(far.server);
  CHECK(CongestionControlOf(far.server) == "bbr");
  CHECK(CongestionControlOf(others.client) == "bbr");
  // A congestion control that does not pace stays.
  REQUIRE(SetCongestionControl(others.client, "cubic"));
  TuneLocalSockets(others.peer());
  CHECK(CongestionControlOf(others.client) == "cubic");
}

TEST_CASE("all connections to a port are found, or one where there is but one") {
  const TcpConnection first("127.0.0.1", "127.0.0.1");
  if (!SetCongestionControl(first.client, "bbr"))
    SKIP("this system has no BBR, or does not permit it");
  const int more[] = {socket(AF_INET, SOCK_STREAM, 0), socket(AF_INET, SOCK_STREAM, 0)};
  sockaddr_in there = TcpConnection::Address("127.0.0.1");
  there.sin_port = htons(static_cast<uint16_t>(first.port));
  for (const int client : more) {
    REQUIRE(SetCongestionControl(client, "bbr"));
    REQUIRE(connect(client, TcpConnection::Name(there), sizeof(there)) == 0);
  }
  const auto paced = [&] {
    int count = 0;
    for (const int client : {first.client, more[0], more[1]}) {
      count += CongestionControlOf(client) == "bbr" ? 1 : 0;
    }
    return count;
  };
  TuneLocalSockets(first.peer(), true);
  CHECK(paced() == 2);
  TuneLocalSockets(first.peer());
  CHECK(paced() == 0);
  for (const int client : more) close(client);
}

TEST_CASE("a peer that names no port, and what is no socket, are left alone") {
  for (const char* peer : {"", "ipv4:", "ipv4:127.0.0.1:", "ipv6:%5B::1%5D:x", "nonsense"}) {
    TuneLocalSockets(peer);
  }
  StopPacing(0);
  StopPacing(-1);
}

}  // namespace
}  // namespace leeway::local_sockets
