#include "common/rpc/local_listener.h"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/rpc/local_sockets.h"

namespace leeway {
namespace {

constexpr char kScheme[] = "unix-abstract:";
constexpr int kWaiting = 128;
// Where there is no file left for a connection it waits, and is looked for again.
constexpr std::chrono::milliseconds kAgainAfter(100);

// In the abstract namespace a name begins with a zero.
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
                                                                    Accepted accepted) {
  const auto end = AddressOf(address);
  if (!end) return absl::InvalidArgumentError(absl::StrCat(address, ": not unix-abstract:NAME"));
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const bool listens =
      socket >= 0 && stop >= 0 &&
      bind(socket, reinterpret_cast<const sockaddr*>(&end->first), end->second) == 0 &&
      listen(socket, kWaiting) == 0;
  if (listens) {
    return std::unique_ptr<LocalListener>(
        new LocalListener(socket, stop, user, std::move(accepted)));
  }
  const absl::Status status = absl::ErrnoToStatus(errno, absl::StrCat("listening on ", address));
  if (socket >= 0) close(socket);
  if (stop >= 0) close(stop);
  return status;
}

LocalListener::LocalListener(int socket, int stop, uint32_t user, Accepted accepted)
    : socket_(socket), stop_(stop), user_(user), accepted_(std::move(accepted)), thread_([this] {
        Run();
      }) {}

LocalListener::~LocalListener() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_, &one, sizeof(one));
  thread_.join();
  close(socket_);
  close(stop_);
}

void LocalListener::Run() {
  pollfd files[] = {{socket_, POLLIN, 0}, {stop_, POLLIN, 0}};
  while (true) {
    poll(files, 2, -1);
    if (files[1].revents != 0) return;
    const int connection = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection >= 0) {
      Take(connection);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      poll(files + 1, 1, static_cast<int>(kAgainAfter.count()));
    }
  }
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
      "a process of user {} (pid {}) has no business at this job's socket, which is user {}'s",
      peer.uid, peer.pid, user_);
}

}  // namespace leeway
