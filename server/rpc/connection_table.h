// Which connections a server has, and which one goes when there are too many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace leeway {

// A connection is a stranger's until a call on it was let in. Where there is no room for a new
// connection, the stranger's that is there for longest goes. So whoever opens connections without
// end, and can do nothing else, displaces their own; a peer that is let in has all the time that it
// takes to open as many others. Where all connections are known the new one is refused.
//
// The library that serves a connection closes it without a word. So entries may be of connections
// that are gone; they are looked for before anybody is refused. Thread-safe.
class ConnectionTable {
 public:
  struct Sockets {
    // Whether `socket` is still the connection of `peer`.
    std::function<bool(int socket, const std::string& peer)> is_open;
    // Ends it.
    std::function<void(int socket)> end;
  };
  ConnectionTable(size_t most, Sockets sockets) : sockets_(std::move(sockets)), most_(most) {}

  void SetMost(size_t most) EXCLUDES(mutex_);
  // A connection that was accepted. `peer` names it, and no other. False: it is to be closed.
  bool Add(int socket, const std::string& peer, Time now) EXCLUDES(mutex_);
  // A call of the peer was let in.
  void LetIn(const std::string& peer) EXCLUDES(mutex_);

  // How many were ended or refused.
  uint64_t turned_away() const EXCLUDES(mutex_);

 private:
  struct Entry {
    std::string peer;
    // Strangers by age; 0: no stranger.
    uint64_t number = 0;
  };
  using Entries = absl::flat_hash_map<int, Entry>;

  bool MakeRoom(Time now) REQUIRES(mutex_);
  void Forget(Entries::iterator entry) REQUIRES(mutex_);
  // Of connections that are gone.
  void ForgetGone(Time now) REQUIRES(mutex_);
  void Complain(const std::string& peer, Time now) REQUIRES(mutex_);

  const Sockets sockets_;
  mutable Mutex mutex_;
  size_t most_ GUARDED_BY(mutex_);
  Entries entries_ GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int> by_peer_ GUARDED_BY(mutex_);
  // Sockets, the oldest first.
  std::map<uint64_t, int> strangers_ GUARDED_BY(mutex_);
  uint64_t next_number_ GUARDED_BY(mutex_) = 1;
  uint64_t turned_away_ GUARDED_BY(mutex_) = 0;
  Time next_look_ GUARDED_BY(mutex_){};
  Time next_complaint_ GUARDED_BY(mutex_){};
};

// ipv4:10.0.0.1:4711, as gRPC names peers, without the port, which differs with each connection.
std::string HostOfPeer(const std::string& peer);

// How many connections one server of a job may have: twice what its workers and servers hold, since
// those of a process that was killed may go later than its next life comes, and kOtherConnections.
// No more than leaves a quarter of the process's `files` for everything else.
inline constexpr size_t kOtherConnections = 1024;
size_t ConnectionsMost(uint64_t of_job, uint64_t files);

}  // namespace leeway
