// Records the connections of a server and decides which one to close when there are too many.
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

// The peer of a connection is a stranger until the server lets in a call on this connection. If the
// table is full and a new connection arrives, the oldest connection of a stranger is closed. So a
// client that only opens connections displaces its own connections, and a legitimate peer has
// enough time for its first call. If there is no stranger, the new connection is refused.
//
// A host may open as many connections at once as the table has room for, and after that
// kConnectsPerSecond. A connection on which a call was let in does not count. A connection that had
// to be ended counts several times. Further connections wait. Without this limit a host without
// credentials could keep the process busy, because gRPC needs much time to accept a connection and
// to detect its end.
//
// gRPC does not report when it closes a connection, so an entry may be of a connection that is
// gone. The table removes such entries before it refuses a connection. Thread-safe.
class ConnectionTable {
 public:
  // The number of bytes on one connection so far. `sent` includes bytes that the peer has not read.
  struct Traffic {
    uint64_t received = 0;
    uint64_t sent = 0;
  };
  struct Sockets {
    // Returns whether `socket` is still the connection of `peer`.
    std::function<bool(int socket, const std::string& peer)> is_open;
    std::function<void(int socket)> end;
    std::function<Traffic(int socket)> traffic;
    // The table calls this function when a call on the connection was let in.
    std::function<void(int socket)> let_in = [](int /*socket*/) {};
  };
  // The most bytes that a stranger may send. gRPC lets a peer send 16 MiB before the server reads
  // the first message. A legitimate peer may send that much before it is let in. The metadata of
  // its first call decides whether it is let in (common/service/unary_call.h), and a busy server
  // may read them late.
  static constexpr uint64_t kStrangerBytes = 20 << 20;
  // Once a stranger has sent this number of bytes, it has one more second until a call must have
  // been let in. A legitimate peer needs less time.
  static constexpr uint64_t kLoudBytes = 1 << 20;
  // Once this number of a host's connections were ended within a minute, every other stranger of
  // this host may send only kKnownBytes. The reason is that a stranger that begins and cancels
  // calls makes gRPC allocate hundreds of megabytes in the milliseconds before its connection is
  // ended.
  static constexpr int kKnownTalkers = 3;
  static constexpr uint64_t kKnownBytes = 64 << 10;
  // The most bytes that are sent to a stranger. A legitimate peer gets less: settings, the
  // certificates of a handshake, and at most a hundred refusals. The limit is needed because gRPC
  // 1.51 queues an answer to each ping and each SETTINGS frame, without any limit, if the peer does
  // not read them.
  static constexpr uint64_t kAnswerBytes = 64 << 10;
  // The number of connections that one host may open per second, after it has opened as many at
  // once as the table has room for.
  static constexpr double kConnectsPerSecond = 100;
  // A connection that was ended because of the bytes that it sent counts as this number of
  // connections.
  static constexpr double kTalkerConnects = 10;
  struct Limits {
    // The maximum number of connections.
    size_t most = 0;
    // The number of bytes that a stranger may send before a call on its connection is let in.
    uint64_t stranger_bytes = kStrangerBytes;
    // What the log advises a person to do if a job needs more connections.
    const char* advice = "allow this process more files (ulimit -n)";
  };

  ConnectionTable(Limits limits, Sockets sockets)
      : stranger_bytes_(limits.stranger_bytes),
        advice_(limits.advice),
        sockets_(std::move(sockets)),
        most_(limits.most) {}

  void SetMost(size_t most) EXCLUDES(mutex_);
  // Returns whether an accepted connection may be added. Returns false if its host has opened too
  // many connections. The caller may ask again later.
  bool MayCome(const std::string& peer, Time now) EXCLUDES(mutex_);
  // Counts a connection that had to wait, and was closed because too many connections wait.
  void TurnAway(const std::string& peer, Time now) EXCLUDES(mutex_);
  // Adds a connection for which MayCome returned true. `peer` is the name of this connection only.
  // Returns false if the caller must close the connection.
  bool Add(int socket, const std::string& peer, Time now) EXCLUDES(mutex_);
  // Call this function when the server has let in a call of this peer.
  void LetIn(const std::string& peer) EXCLUDES(mutex_);
  // Ends each stranger's connection that has carried more bytes than a legitimate peer's connection
  // ever does. This is necessary because of CVE-2023-33953: gRPC 1.51 keeps a header that does not
  // end, and parses all of it again with each new piece. A few megabytes of such a header keep the
  // process busy. A connection is ended if its peer has
  // - sent more than kStrangerBytes;
  // - sent more than kLoudBytes, and after another second no call on it has been let in, or after a
  //   tenth of a second if a connection of the same host was ended in the last minute;
  // - sent more than kKnownBytes, and kKnownTalkers connections of the same host were ended;
  // - been sent more than kAnswerBytes.
  // Call this function every few milliseconds. Returns false if no stranger is connected.
  bool EndTalkers(Time now) EXCLUDES(mutex_);
  // Ends the connection because of what its peer does. Returns false if the peer is not a stranger.
  bool EndStranger(const std::string& peer, Time now) EXCLUDES(mutex_);

  // Return how many connections were ended or refused because the table was full (turned_away),
  // were closed because their host opened too many (of_crowds), and were ended because of the bytes
  // that they carried (talkers).
  uint64_t turned_away() const EXCLUDES(mutex_);
  uint64_t of_crowds() const EXCLUDES(mutex_);
  uint64_t talkers() const EXCLUDES(mutex_);

 private:
  struct Entry {
    std::string peer;
    // The number of the connection, which orders strangers by age. It is 0 if the peer is not a
    // stranger.
    uint64_t number = 0;
  };
  using Entries = absl::flat_hash_map<int, Entry>;

  struct Host {
    // The number of connections that the host may still open, as of `at`.
    double connections = 0;
    Time at{};
    // How many of the host's connections were recently ended because of the bytes that they
    // carried.
    int talkers = 0;
    Time suspect_until{};
  };

  Host& HostOf(const std::string& peer, Time now) REQUIRES(mutex_);
  // Returns how many connections of the peer's host were ended in the last minute because of the
  // bytes that they carried.
  int TalkersOf(const std::string& peer, Time now) const REQUIRES(mutex_);
  bool MakeRoom(Time now) REQUIRES(mutex_);
  void Forget(Entries::iterator entry) REQUIRES(mutex_);
  void ForgetGone(Time now) REQUIRES(mutex_);
  void Complain(const std::string& peer, Time now) REQUIRES(mutex_);
  bool MayTalk(Traffic traffic, const std::string& peer, Time now) REQUIRES(mutex_);
  void EndTalker(Entries::iterator entry, Time now) REQUIRES(mutex_);

  const uint64_t stranger_bytes_;
  const char* const advice_;
  const Sockets sockets_;
  mutable Mutex mutex_;
  size_t most_ GUARDED_BY(mutex_);
  Entries entries_ GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int> by_peer_ GUARDED_BY(mutex_);
  // Sockets by number, the oldest first.
  std::map<uint64_t, int> strangers_ GUARDED_BY(mutex_);
  uint64_t next_number_ GUARDED_BY(mutex_) = 1;
  // The strangers that have sent more than kLoudBytes, and when that was first seen.
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

// Returns the host in a peer's name. gRPC names peers as in ipv4:10.0.0.1:4711, where the port
// differs for each connection. The result has no port.
std::string HostOfPeer(const std::string& peer);

// Returns how many connections one server of a job may have. That is twice the number `of_job`
// that the job's workers and servers hold, plus kOtherConnections. The factor is two because
// connections of a killed process may still exist when the process has been started again. At
// least a quarter of the process's `files` is left for other purposes.
inline constexpr size_t kOtherConnections = 1024;
size_t ConnectionsMost(uint64_t of_job, uint64_t files);

}  // namespace leeway
