// Several descriptors to poll as one.
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

  // Until it is closed.
  absl::Status Add(int fd);
  // Readable while one of them is.
  int fd() const { return fd_; }
  // Those that are readable, or at their end, now.
  std::set<int> Readable() const;

 private:
  explicit EventSet(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace leeway
