#include "common/local_sockets.h"

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <sys/socket.h>
#include <sys/un.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/identity.h"

namespace leeway {
namespace {

constexpr char kPrefix[] = "leeway-";
constexpr int kSendBytes = 1 << 20;

using NameOfEnd = int (*)(int, sockaddr*, socklen_t*);

// In the abstract namespace a name begins with a zero.
bool IsOurs(int socket, NameOfEnd name_of_end) {
  sockaddr_un address{};
  socklen_t length = sizeof(address);
  if (name_of_end(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return false;
  constexpr size_t kLength = sizeof(kPrefix) - 1;
  return address.sun_family == AF_UNIX && length > offsetof(sockaddr_un, sun_path) + 1 + kLength &&
         address.sun_path[0] == '\0' && std::memcmp(address.sun_path + 1, kPrefix, kLength) == 0;
}

void Widen(int socket) {
  int bytes = 0;
  socklen_t length = sizeof(bytes);
  // The system says, and counts, twice what it is asked for.
  if (getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, &length) != 0 || bytes >= kSendBytes) {
    return;
  }
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kSendBytes, sizeof(kSendBytes));
}

}  // namespace

std::string NewLocalAddress() {
  return absl::StrCat("unix-abstract:", kPrefix, absl::Hex(RandomIdentity(), absl::kZeroPad16));
}

void WidenLocalSockets() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    int file = -1;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &file)) continue;
    if (IsOurs(file, getpeername) || IsOurs(file, getsockname)) Widen(file);
  }
}

}  // namespace leeway
