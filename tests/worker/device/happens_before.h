// Finds work of a device that is in no order with other work on the same memory, whatever order it
// happens to run in: vector clocks (Lamport 1978; Mattern 1989) over streams and events, as race
// detectors have over threads and locks (FastTrack, Flanagan and Freund 2009).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "worker/compute/backend.h"

namespace leeway::testing {

// Memory that a piece of work touches.
struct Access {
  const void* data = nullptr;
  size_t bytes = 0;
  bool writes = false;
};

const char* NameOf(Stream stream);

// Told of everything in the order in which the host queues it. Not thread-safe.
class HappensBefore {
 public:
  // Work of `what`; what it conflicts with and is not ordered behind, if anything.
  std::optional<std::string> Queue(Stream stream, const char* what,
                                   const std::vector<Access>& accesses);
  void Record(Stream stream, StreamEvent event);
  void Wait(Stream stream, StreamEvent event);
  // The host has seen that the event is done.
  void HostSees(StreamEvent event);
  // Who may still be at work in this memory in a way that a use of it by the host, now, conflicts
  // with.
  std::optional<std::string> InUse(const Access& memory) const;
  // The host uses it from now on, until HostEnds; InUse.
  std::optional<std::string> HostBegins(const Access& memory);
  void HostEnds(const void* data);

 private:
  // How many pieces of each stream's work have certainly been done.
  using Clock = std::array<uint64_t, kStreams>;
  struct Past {
    Stream stream;
    uint64_t number;
    const char* what;
    Access access;
  };
  static void Join(Clock& clock, const Clock& other);
  const Past* Conflict(const Clock& clock, const Access& access) const;

  std::array<Clock, kStreams> clocks_{};
  Clock host_{};
  std::map<uint64_t, Clock> events_;
  // What the host has not seen done.
  std::vector<Past> past_;
  // What the host itself is at.
  std::vector<Access> host_uses_;
};

}  // namespace leeway::testing
