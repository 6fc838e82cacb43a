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

// A connection belongs to a stranger until the server lets in a call on it. If a new connection
// finds no room, the stranger that has been connected longest is closed. So a client that only
// opens connections displaces its own ones, and a legitimate peer has the time that opening all the
// others takes. If no connection belongs to a stranger, the new one is refused.
//
// A host may open as many connections at once as the table may hold, and then kConnectsPerSecond. A
// connection on which a call was let in does not count; one that had to be ended counts several
// times. Further connections wait. Without this limit a host without credentials could keep the
// process busy, because gRPC needs long to serve a connection and to notice its end.
//
// gRPC does not say when it closes a connection. So an entry may be of a connection that is gone;
// the table looks for such entries before it refuses a connection. Thread-safe.
class ConnectionTable {
 public:
  // The bytes of one connection so far. `sent` includes bytes that the peer has not read.
  struct Traffic {
    uint64_t received = 0;
    uint64_t sent = 0;
  };
  struct Sockets {
    // Whether `socket` is still the connection of `peer`.
    std::function<bool(int socket, const std::string& peer)> is_open;
    // Ends the connection.
    std::function<void(int socket)> end;
    std::function<Traffic(int socket)> traffic;
    // A call on the connection was let in.
    std::function<void(int socket)> let_in = [](int /*socket*/) {};
  };
  // More than gRPC lets a peer send before the server reads its first message, 16 MiB. A
  // legitimate peer is let in by the metadata of its first call (common/service/unary_call.h), and a
  // busy server may read it late.
  static constexpr uint64_t kStrangerBytes = 20 << 20;
  // A legitimate peer does not bring this much for a second before it is let in.
  static constexpr uint64_t kLoudBytes = 1 << 20;
  // Once this number of a host's connections were ended within a minute, each of its other
  // strangers is ended beyond kKnownBytes. In the milliseconds for which a stranger is tolerated,
  // one that begins and breaks off calls makes gRPC keep hundreds of megabytes.
  static constexpr int kKnownTalkers = 3;
  static constexpr uint64_t kKnownBytes = 64 << 10;
  // More than settings, a handshake's certificates and a hundred refusals. gRPC 1.51 queues an
  // answer to each ping and each SETTINGS frame without limit if the peer does not read them.
  static constexpr uint64_t kAnswerBytes = 64 << 10;
  // The rate for one host that has already opened as many connections as the table may hold.
  static constexpr double kConnectsPerSecond = 100;
  // A connection that had to be ended for the bytes that it brought counts as this number of
  // connections.
  static constexpr double kTalkerConnects = 10;
  struct Limits {
    // The maximum number of connections.
    size_t most = 0;
    // What a connection may bring before a call on it is let in.
    uint64_t stranger_bytes = kStrangerBytes;
  };

  ConnectionTable(Limits limits, Sockets sockets)
      : stranger_bytes_(limits.stranger_bytes), sockets_(std::move(sockets)), most_(limits.most) {}

  void SetMost(size_t most) EXCLUDES(mutex_);
  // Asks whether an accepted connection may enter. False: its host has opened too many, and the
  // connection may try again later.
  bool MayCome(const std::string& peer, Time now) EXCLUDES(mutex_);
  // Counts a connection that was not let in and is closed because others wait as well.
  void TurnAway(const std::string& peer, Time now) EXCLUDES(mutex_);
  // Adds a connection that may enter. `peer` names this connection and no other. Returns false if
  // the connection must be closed.
  bool Add(int socket, const std::string& peer, Time now) EXCLUDES(mutex_);
  // The server let in a call of this peer.
  void LetIn(const std::string& peer) EXCLUDES(mutex_);
  // Ends each stranger's connection that brings more bytes than any legitimate peer would. gRPC
  // 1.51 keeps a header that does not end and reads it anew with each piece, so that a few
  // megabytes keep it busy (CVE-2023-33953). The limits are:
  // - more than kStrangerBytes;
  // - more than kLoudBytes for a second, in which a call would have been let in; for a tenth of a
  //   second if a connection of the host was ended in the last minute;
  // - more than kKnownBytes if kKnownTalkers of the host's connections were ended;
  // - more than kAnswerBytes sent to it.
  // Call it every few milliseconds. Returns false if no stranger is connected.
  bool EndTalkers(Time now) EXCLUDES(mutex_);
  // Ends the connection because of what its peer does. Returns false if the peer is not a stranger.
  bool EndStranger(const std::string& peer, Time now) EXCLUDES(mutex_);

  // How many connections were ended or refused for lack of room; were ended because their host
  // opened too many; were ended for the bytes that they brought.
  uint64_t turned_away() const EXCLUDES(mutex_);
  uint64_t of_crowds() const EXCLUDES(mutex_);
  uint64_t talkers() const EXCLUDES(mutex_);

 private:
  struct Entry {
    std::string peer;
    // Orders strangers by age. 0: the peer is not a stranger.
    uint64_t number = 0;
  };
  using Entries = absl::flat_hash_map<int, Entry>;

  struct Host {
    // The number of connections that the host may still open, as of `at`.
    double connections = 0;
    Time at{};
    // How many of its connections were recently ended for the bytes that they brought.
    int talkers = 0;
    Time suspect_until{};
  };

  Host& HostOf(const std::string& peer, Time now) REQUIRES(mutex_);
  // How many talkers the host had in the last minute.
  int TalkersOf(const std::string& peer, Time now) const REQUIRES(mutex_);
  bool MakeRoom(Time now) REQUIRES(mutex_);
  void Forget(Entries::iterator entry) REQUIRES(mutex_);
  // Forgets the entries of connections that are gone.
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
  // Sockets by number, the oldest first.
  std::map<uint64_t, int> strangers_ GUARDED_BY(mutex_);
  uint64_t next_number_ GUARDED_BY(mutex_) = 1;
  // The peers that have brought more than kLoudBytes, and since when.
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

// ipv4:10.0.0.1:4711, as gRPC names peers, without the port, which differs for each connection.
std::string HostOfPeer(const std::string& peer);

// How many connections one server of a job may have: twice the number that its workers and servers
// hold, plus kOtherConnections. The factor is two because connections of a killed process may
// outlast the start of its next life. At least a quarter of the process's `files` stays for
// everything else.
inline constexpr size_t kOtherConnections = 1024;
size_t ConnectionsMost(uint64_t of_job, uint64_t files);

}  // namespace leeway
