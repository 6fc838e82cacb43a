// Several file descriptors that a caller polls as one.
#pragma once

#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leeway {

class EventSet {
 public:
  static absl::StatusOr<EventSet> Make();
  ~EventSet();
  EventSet(EventSet&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  EventSet& operator=(EventSet&&) = delete;

  // Adds `fd`, which stays in the set until it is closed.
  absl::Status Add(int fd);
  // Returns a file descriptor that is readable while any descriptor in the set is readable.
  int fd() const { return fd_; }
  // Returns the descriptors in the set that are now readable or at their end.
  std::set<int> Readable() const;

 private:
  explicit EventSet(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace leeway
