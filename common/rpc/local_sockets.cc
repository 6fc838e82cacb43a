#include "common/rpc/local_sockets.h"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/identity.h"

namespace leeway {
namespace {

constexpr char kPrefix[] = "leeway-";
constexpr int kSendBytes = 1 << 20;
// The search ends at this file number. The system gives a new file the lowest free number.
constexpr int kFilesMost = 1024;

using NameOfEnd = int (*)(int, sockaddr*, socklen_t*);

// Returns whether this end of the socket has an address from NewLocalAddress. A name in the
// abstract namespace begins with a zero byte.
bool IsOurs(int socket, NameOfEnd name_of_end) {
  sockaddr_un address{};
  socklen_t length = sizeof(address);
  if (name_of_end(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return false;
  constexpr size_t kLength = sizeof(kPrefix) - 1;
  return address.sun_family == AF_UNIX && length > offsetof(sockaddr_un, sun_path) + 1 + kLength &&
         address.sun_path[0] == '\0' && std::memcmp(address.sun_path + 1, kPrefix, kLength) == 0;
}

// One end of a TCP connection.
struct End {
  // The bytes of the IP address, in network order.
  std::string host;
  int port = 0;
};

std::optional<End> EndOf(int socket, NameOfEnd name_of_end) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (name_of_end(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return std::nullopt;
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    const char* bytes = reinterpret_cast<const char*>(&v4.sin_addr);
    return End{{bytes, sizeof(v4.sin_addr)}, ntohs(v4.sin_port)};
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    const char* bytes = reinterpret_cast<const char*>(&v6.sin6_addr);
    return End{{bytes, sizeof(v6.sin6_addr)}, ntohs(v6.sin6_port)};
  }
  return std::nullopt;
}

}  // namespace

std::string NewLocalAddress() {
  return absl::StrCat("unix-abstract:", kPrefix, absl::Hex(RandomIdentity(), absl::kZeroPad16));
}

void WidenLocalSocket(int socket) {
  int bytes = 0;
  socklen_t length = sizeof(bytes);
  // The kernel doubles the size that a process sets, and reports the doubled size.
  if (getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, &length) != 0 || bytes >= kSendBytes) {
    return;
  }
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kSendBytes, sizeof(kSendBytes));
}

void StopPacing(int socket) {
  const std::optional<End> here = EndOf(socket, getsockname), there = EndOf(socket, getpeername);
  if (!here.has_value() || !there.has_value() || here->host != there->host) return;
  char name[16] = {};
  socklen_t length = sizeof(name) - 1;
  if (getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name, &length) != 0) return;
  if (!std::string_view(name).starts_with("bbr")) return;
  constexpr std::string_view kReno = "reno";
  setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, kReno.data(), kReno.size());
}

void TuneLocalSockets(const std::string& peer, bool sole) {
  if (peer.starts_with("unix")) {
    for (int file = 0; file < kFilesMost; ++file) {
      if (IsOurs(file, getpeername) || IsOurs(file, getsockname)) WidenLocalSocket(file);
    }
    return;
  }
  // Do nothing, because LocalListener accepted this connection and has already widened its socket.
  if (peer.starts_with("fd:")) return;
  int port = 0;
  if (!absl::SimpleAtoi(peer.substr(peer.find_last_of(':') + 1), &port)) return;
  // Begin at the number where the last search ended, because a new connection's number is near the
  // previous connection's number.
  static std::atomic<int> last_found{0};
  const int first = last_found;
  for (int i = 0; i < kFilesMost; ++i) {
    const int file = (first + i) % kFilesMost;
    const std::optional<End> there = EndOf(file, getpeername);
    if (!there.has_value() || there->port != port) continue;
    StopPacing(file);
    last_found = file;
    if (sole) return;
  }
}

}  // namespace leeway
