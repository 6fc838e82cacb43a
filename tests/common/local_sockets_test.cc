#include "common/local_sockets.h"

#include <cstddef>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/catch.h"
#include "tests/widened_sockets.h"

namespace leeway {
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
  WidenLocalSockets();
  WidenLocalSockets();
  CHECK(SendBytesOf(ours.client) > before);
  CHECK(SendBytesOf(ours.server) == SendBytesOf(ours.client));
  CHECK(SendBytesOf(others.client) == before);
  CHECK(SendBytesOf(others.server) == before);
}

}  // namespace
}  // namespace leeway
