#include "common/rpc/acceptor.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/rpc/doorway.h"

namespace leeway {
namespace {

constexpr std::chrono::milliseconds kAgainAfter(100);
constexpr int kLookMs = static_cast<int>(
    std::chrono::duration_cast<std::chrono::milliseconds>(Doorway::kLookEvery).count());

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Start(std::vector<Descriptor> listening,
                                                          Accepted accepted, Look look) {
  Descriptor stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (*stop < 0) return absl::ErrnoToStatus(errno, "waiting for connections");
  return std::unique_ptr<Acceptor>(
      new Acceptor(std::move(listening), std::move(stop), std::move(accepted), std::move(look)));
}

Acceptor::Acceptor(std::vector<Descriptor> listening, Descriptor stop, Accepted accepted, Look look)
    : listening_(std::move(listening)),
      stop_(std::move(stop)),
      accepted_(std::move(accepted)),
      look_(std::move(look)),
      thread_([this] { Run(); }) {}

Acceptor::~Acceptor() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(*stop_, &one, sizeof(one));
  thread_.join();
}

void Acceptor::Run() {
  std::vector<pollfd> files = {{*stop_, POLLIN, 0}};
  for (const Descriptor& socket : listening_) files.push_back({*socket, POLLIN, 0});
  while (true) {
    poll(files.data(), files.size(), look_() ? kLookMs : -1);
    if (files[0].revents != 0) return;
    bool room = true;
    for (size_t i = 1; i < files.size(); ++i) {
      if (files[i].revents != 0) room &= Take(files[i].fd);
    }
    if (!room) poll(files.data(), 1, static_cast<int>(kAgainAfter.count()));
  }
}

bool Acceptor::Take(int listening) {
  const int connection = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection >= 0) accepted_(connection);
  return connection >= 0 ||
         !(errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS);
}

}  // namespace leeway
