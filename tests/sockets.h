// How the sockets of this process are configured.
#pragma once

#include <filesystem>
#include <string>

#include <netinet/in.h>
#include <netinet/tcp.h>
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

// Returns the socket's congestion control; empty: it has no such setting.
inline std::string CongestionControlOf(int socket) {
  char name[16] = {};
  socklen_t length = sizeof(name) - 1;
  getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name, &length);
  return name;
}

// Returns false if the system does not have this congestion control, or does not permit it.
inline bool SetCongestionControl(int socket, const std::string& name) {
  return setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                    static_cast<socklen_t>(name.size())) == 0;
}

// Counts the ends of TCP connections that have this congestion control.
inline int SocketsWith(const std::string& name) {
  int sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int file = std::stoi(entry.path().filename().string());
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    const bool connected = getpeername(file, reinterpret_cast<sockaddr*>(&peer), &length) == 0;
    sockets += connected && CongestionControlOf(file) == name;
  }
  return sockets;
}

// Whether the system's default congestion control paces.
inline bool NewSocketsPace() {
  const int fresh = socket(AF_INET, SOCK_STREAM, 0);
  const bool paces = CongestionControlOf(fresh) == "bbr";
  close(fresh);
  return paces;
}

// Counts the Unix sockets whose buffers are larger than a new socket's.
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

// A port of this machine that another socket listens on.
class TakenPort {
 public:
  TakenPort() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    bind(socket_, any, length);
    listen(socket_, 1);
    getsockname(socket_, any, &length);
    port_ = ntohs(address.sin_port);
  }
  ~TakenPort() { close(socket_); }
  TakenPort(const TakenPort&) = delete;
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  const int socket_;
  int port_ = 0;
};

}  // namespace leeway::testing
