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
// A host may open as many connections at once as there may be in all, and then so many a second;
// those on which a call was let in do not count, and those that had to be ended count several
// times. What is more waits: to serve one and see it go takes gRPC so long that a host without
// credentials could keep the process busy.
//
// The library that serves a connection closes it without a word. So entries may be of connections
// that are gone; they are looked for before anybody is refused. Thread-safe.
class ConnectionTable {
 public:
  // Bytes of one connection so far: what it has brought, and what it is sent, read or not.
  struct Traffic {
    uint64_t received = 0;
    uint64_t sent = 0;
  };
  struct Sockets {
    // Whether `socket` is still the connection of `peer`.
    std::function<bool(int socket, const std::string& peer)> is_open;
    // Ends it.
    std::function<void(int socket)> end;
    std::function<Traffic(int socket)> traffic;
    // A call on it was let in.
    std::function<void(int socket)> let_in = [](int /*socket*/) {};
  };
  // More than gRPC lets a peer send before the server reads its first message, 16 MiB: a peer that
  // may call is let in by the metadata of its first call (common/service/unary_call.h), which a busy
  // server may look at late.
  static constexpr uint64_t kStrangerBytes = 20 << 20;
  // A peer that may call does not bring so much for a second before it is let in.
  static constexpr uint64_t kLoudBytes = 1 << 20;
  // Where so many connections of a host were ended within a minute, each of its others ends at once
  // beyond kKnownBytes: in the milliseconds of its patience one that begins and breaks off calls
  // makes gRPC keep hundreds of megabytes.
  static constexpr int kKnownTalkers = 3;
  static constexpr uint64_t kKnownBytes = 64 << 10;
  // More than settings, a handshake's certificates and a hundred refusals. gRPC 1.51 queues an
  // answer to each ping and each SETTINGS without end where the peer does not read them.
  static constexpr uint64_t kAnswerBytes = 64 << 10;
  // Of one host, once it has opened as many as there may be.
  static constexpr double kConnectsPerSecond = 100;
  // What a connection counts that had to be ended for what it brought.
  static constexpr double kTalkerConnects = 10;
  struct Limits {
    // Connections.
    size_t most = 0;
    // What one may bring before a call on it was let in.
    uint64_t stranger_bytes = kStrangerBytes;
  };

  ConnectionTable(Limits limits, Sockets sockets)
      : stranger_bytes_(limits.stranger_bytes), sockets_(std::move(sockets)), most_(limits.most) {}

  void SetMost(size_t most) EXCLUDES(mutex_);
  // Of a connection that was accepted. False: its host has opened more than it may; later it may.
  bool MayCome(const std::string& peer, Time now) EXCLUDES(mutex_);
  // One that may not is closed, for others wait as well.
  void TurnAway(const std::string& peer, Time now) EXCLUDES(mutex_);
  // One that may come. `peer` names it, and no other. False: it is to be closed.
  bool Add(int socket, const std::string& peer, Time now) EXCLUDES(mutex_);
  // A call of the peer was let in.
  void LetIn(const std::string& peer) EXCLUDES(mutex_);
  // Ends strangers' connections that bring what no peer would, of whatever kind: gRPC 1.51 keeps a
  // header that does not end, and reads it anew with each piece, so that a few megabytes keep it
  // busy (CVE-2023-33953). That is more than kStrangerBytes; or more than kLoudBytes for a second,
  // in which a call would have been let in, and for a tenth of it where one of the host was ended
  // in the last minute; or more than kKnownBytes where kKnownTalkers were. It also ends those that
  // are sent more than kAnswerBytes. To be called every few milliseconds. False: there are no
  // strangers.
  bool EndTalkers(Time now) EXCLUDES(mutex_);
  // For what the peer does. False: it is no stranger.
  bool EndStranger(const std::string& peer, Time now) EXCLUDES(mutex_);

  // How many were ended or refused for want of room; because their host opened too many; and how
  // many were ended for what they brought.
  uint64_t turned_away() const EXCLUDES(mutex_);
  uint64_t of_crowds() const EXCLUDES(mutex_);
  uint64_t talkers() const EXCLUDES(mutex_);

 private:
  struct Entry {
    std::string peer;
    // Strangers by age; 0: no stranger.
    uint64_t number = 0;
  };
  using Entries = absl::flat_hash_map<int, Entry>;

  struct Host {
    // That it may still open, as of `at`.
    double connections = 0;
    Time at{};
    // Of its connections that were ended for what they brought, so many lately.
    int talkers = 0;
    Time suspect_until{};
  };

  Host& HostOf(const std::string& peer, Time now) REQUIRES(mutex_);
  // How many talkers the host had in the last minute.
  int TalkersOf(const std::string& peer, Time now) const REQUIRES(mutex_);
  bool MakeRoom(Time now) REQUIRES(mutex_);
  void Forget(Entries::iterator entry) REQUIRES(mutex_);
  // Of connections that are gone.
  void ForgetGone(Time now) REQUIRES(mutex_);
  void Complain(const std::string& peer, Time now) REQUIRES(mutex_);
  bool MayTalk(Traffic traffic, const std::string& peer, Time now) REQUIRES(mutex_);
  void EndTalker(Entries::iterator entry, Time now) REQUIRES(mutex_);

  const uint64_t stranger_bytes_;
  const Sockets sockets_;
  mutable Mutex mutex_;
  size_t most_ GUARDED_BY(mutex_);
  Entries entries_ GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int> by_peer_ GUARDED_BY(mutex_);
  // Sockets, the oldest first.
  std::map<uint64_t, int> strangers_ GUARDED_BY(mutex_);
  uint64_t next_number_ GUARDED_BY(mutex_) = 1;
  // Peers that have brought more than kLoudBytes: since when.
  absl::flat_hash_map<std::string, Time> loud_ GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Host> hosts_ GUARDED_BY(mutex_);
  uint64_t turned_away_ GUARDED_BY(mutex_) = 0;
  uint64_t of_crowds_ GUARDED_BY(mutex_) = 0;
  uint64_t talkers_ GUARDED_BY(mutex_) = 0;
  Time next_look_ GUARDED_BY(mutex_){};
  Time next_complaint_ GUARDED_BY(mutex_){};
  Time next_crowd_complaint_ GUARDED_BY(mutex_){};
  Time next_talker_complaint_ GUARDED_BY(mutex_){};
};

// ipv4:10.0.0.1:4711, as gRPC names peers, without the port, which differs with each connection.
std::string HostOfPeer(const std::string& peer);

// How many connections one server of a job may have: twice what its workers and servers hold, since
// those of a process that was killed may go later than its next life comes, and kOtherConnections.
// No more than leaves a quarter of the process's `files` for everything else.
inline constexpr size_t kOtherConnections = 1024;
size_t ConnectionsMost(uint64_t of_job, uint64_t files);

}  // namespace leeway
