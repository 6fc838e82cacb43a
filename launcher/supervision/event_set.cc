#include "launcher/supervision/event_set.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <sys/epoll.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace leeway {

absl::StatusOr<EventSet> EventSet::Make() {
  const int fd = epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) return absl::InternalError(absl::StrCat("epoll_create1: ", strerror(errno)));
  return EventSet(fd);
}

EventSet::~EventSet() {
  if (fd_ >= 0) close(fd_);
}

absl::Status EventSet::Add(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("epoll_ctl: ", strerror(errno)));
}

std::set<int> EventSet::Readable() const {
  std::array<epoll_event, 8> events{};
  std::set<int> readable;
  const int count = epoll_wait(fd_, events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) readable.insert(events[i].data.fd);
  return readable;
}

}  // namespace leeway
