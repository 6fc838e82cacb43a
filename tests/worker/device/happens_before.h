// Finds work of a device that is not ordered with other work on the same memory, whatever order it
// happens to run in. It keeps vector clocks (Lamport 1978; Mattern 1989) over streams and events,
// as race detectors do over threads and locks (FastTrack, Flanagan and Freund 2009).
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

// The caller reports every operation in the order in which the host queues it. Not thread-safe.
class HappensBefore {
 public:
  // Queues work of the name `what`. Returns the earlier work that it conflicts with and is not
  // ordered behind, if there is any.
  std::optional<std::string> Queue(Stream stream, const char* what,
                                   const std::vector<Access>& accesses);
  void Record(Stream stream, StreamEvent event);
  void Wait(Stream stream, StreamEvent event);
  // The host has seen that the event is done.
  void HostSees(StreamEvent event);
  // Returns the unfinished work on this memory that conflicts with a use of it by the host at this
  // moment, if there is any.
  std::optional<std::string> InUse(const Access& memory) const;
  // The host uses the memory from now on, until HostEnds. Returns what InUse does.
  std::optional<std::string> HostBegins(const Access& memory);
  void HostEnds(const void* data);

 private:
  // By stream: how many pieces of its work have certainly been done.
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
  // The work that the host has not seen done.
  std::vector<Past> past_;
  // The memory that the host itself is using.
  std::vector<Access> host_uses_;
};

}  // namespace leeway::testing
