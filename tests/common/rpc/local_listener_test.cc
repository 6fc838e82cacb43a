#include "common/rpc/local_listener.h"

#include <cstddef>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/rpc/local_sockets.h"
#include "tests/catch.h"

namespace leeway::local_listener {
namespace {

// Connects to the address. Returns the first byte of an answer; 0 if the connection was closed.
char FirstByteFrom(const std::string& address) {
  const std::string name = address.substr(sizeof("unix-abstract:") - 1);
  sockaddr_un end{};
  end.sun_family = AF_UNIX;
  name.copy(end.sun_path + 1, name.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  REQUIRE(connect(socket, reinterpret_cast<sockaddr*>(&end), length) == 0);
  char byte = 0;
  const ssize_t got = read(socket, &byte, 1);
  close(socket);
  return got == 1 ? byte : '\0';
}

std::unique_ptr<LocalListener> Greeting(const std::string& address, uint32_t user) {
  auto listener = LocalListener::Start(address, user, [](int socket) {
    // If the byte does not arrive, the reader notices.
    [[maybe_unused]] const ssize_t sent = write(socket, "x", 1);
    close(socket);
  });
  REQUIRE(listener.ok());
  return *std::move(listener);
}

TEST_CASE("a process of the same user is let in") {
  const std::string address = NewLocalAddress();
  const auto listener = Greeting(address, geteuid());
  CHECK(FirstByteFrom(address) == 'x');
  CHECK(FirstByteFrom(address) == 'x');
}

TEST_CASE("a process of another user is shown the door, and the next is heard") {
  if (geteuid() == 0) {
    // Root is always admitted: this process becomes the user nobody for the connection.
    const std::string address = NewLocalAddress();
    const auto listener = Greeting(address, 1234);
    CHECK(FirstByteFrom(address) == 'x');
    REQUIRE(seteuid(65534) == 0);
    const char byte = FirstByteFrom(address);
    REQUIRE(seteuid(0) == 0);
    CHECK(byte == '\0');
    CHECK(FirstByteFrom(address) == 'x');
    return;
  }
  const std::string address = NewLocalAddress();
  const auto listener = Greeting(address, geteuid() + 1);
  CHECK(FirstByteFrom(address) == '\0');
}

TEST_CASE("an address that is taken, or none, is an error") {
  const std::string address = NewLocalAddress();
  const auto listener = Greeting(address, geteuid());
  CHECK_FALSE(LocalListener::Start(address, 0, [](int) {}).ok());
  CHECK_FALSE(LocalListener::Start("unix:/tmp/x", 0, [](int) {}).ok());
  CHECK_FALSE(LocalListener::Start("unix-abstract:", 0, [](int) {}).ok());
  CHECK_FALSE(LocalListener::Start("unix-abstract:" + std::string(200, 'x'), 0, [](int) {}).ok());
}

}  // namespace
}  // namespace leeway::local_listener
