// Which unix sockets of this process have more room than a new one has.
#pragma once

#include <filesystem>
#include <string>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace leeway::testing {

inline int SendBytesOf(int socket) {
  int bytes = -1;
  socklen_t length = sizeof(bytes);
  getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, &length);
  return bytes;
}

inline int WidenedSockets() {
  const int fresh = socket(AF_UNIX, SOCK_STREAM, 0);
  int widened = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int file = std::stoi(entry.path().filename().string());
    sockaddr_un address{};
    socklen_t length = sizeof(address);
    const bool is_unix = getsockname(file, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
                         address.sun_family == AF_UNIX;
    widened += is_unix && SendBytesOf(file) > SendBytesOf(fresh);
  }
  close(fresh);
  return widened;
}

}  // namespace leeway::testing
