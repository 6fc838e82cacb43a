#include "common/rpc/local_listener.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/descriptor.h"
#include "common/rpc/local_sockets.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr char kScheme[] = "unix-abstract:";
constexpr int kWaiting = 128;

// Returns the socket address for unix-abstract:NAME, or nothing if `address` has another form. A
// name in the abstract namespace begins with a zero byte.
std::optional<std::pair<sockaddr_un, socklen_t>> AddressOf(const std::string& address) {
  if (!address.starts_with(kScheme)) return std::nullopt;
  const std::string name = address.substr(sizeof(kScheme) - 1);
  sockaddr_un end{};
  if (name.empty() || name.size() + 1 > sizeof(end.sun_path)) return std::nullopt;
  end.sun_family = AF_UNIX;
  std::memcpy(end.sun_path + 1, name.data(), name.size());
  return std::pair(end, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalListener>> LocalListener::Start(const std::string& address,
                                                                    uint32_t user,
                                                                    Acceptor::Accepted accepted) {
  const auto end = AddressOf(address);
  if (!end)
    return absl::InvalidArgumentError(absl::StrCat(address, ": expected unix-abstract:NAME"));
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool listens =
      *socket >= 0 &&
      bind(*socket, reinterpret_cast<const sockaddr*>(&end->first), end->second) == 0 &&
      listen(*socket, kWaiting) == 0;
  if (!listens) return absl::ErrnoToStatus(errno, absl::StrCat("listening on ", address));
  std::unique_ptr<LocalListener> listener(new LocalListener(user, std::move(accepted)));
  std::vector<Descriptor> sockets;
  sockets.push_back(std::move(socket));
  ASSIGN_OR_RETURN(listener->acceptor_,
                   Acceptor::Start(std::move(sockets), [here = listener.get()](int connection) {
                     here->Take(connection);
                   }));
  return listener;
}

void LocalListener::Take(int connection) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  const bool known = getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
  if (known && (peer.uid == 0 || peer.uid == user_)) {
    WidenLocalSocket(connection);
    return accepted_(connection);
  }
  close(connection);
  if (std::exchange(complained_, true)) return;
  spdlog::warn(
      "refused a process of user {} (pid {}) at this job's socket, which belongs to user {}",
      peer.uid, peer.pid, user_);
}

}  // namespace leeway
