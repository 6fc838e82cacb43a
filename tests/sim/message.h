// Everything that can happen in a simulated world, as one plain struct: messages, timers, faults.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "tests/sim/shape.h"

namespace leeway::sim {

// A version of a block, as the exact set of contributions in it and one number that stands for the
// values.
struct Version {
  uint64_t number = 0;
  uint64_t values = 0;
  // By rank: bit c is the contribution of clock c.
  std::array<uint64_t, kRanksMax> clocks{};
  bool operator==(const Version&) const = default;
};

// Clocks below `clock`.
inline uint64_t Below(uint64_t clock) {
  return clock >= 64 ? ~uint64_t{0} : (uint64_t{1} << clock) - 1;
}

inline uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t z = (a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// Who sends and receives: rank, then servers, then the coordinator.
using NodeId = uint8_t;
inline constexpr NodeId kServer0 = kRanksMax;
inline constexpr NodeId kCoordinator = kServer0 + kServersMax;
inline constexpr uint32_t kNodes = kCoordinator + 1;
std::string NodeName(NodeId node);

enum class Kind : uint8_t {
  // A worker to a server; answered by kReply.
  kAttach,
  kInitialize,
  kPush,
  kPushPull,
  kPull,
  kLatest,
  // A worker to the coordinator; answered by kReply, but for kHeartbeat by kHeartbeatReply.
  kRegister,
  kStopAt,
  kLeave,
  kState,
  kHeartbeat,
  kReply,
  kHeartbeatReply,
  // A server to the coordinator.
  kServerRegister,
  kServerHeartbeat,
  kShardSaved,
  kHeld,
  kCommandDone,
  // To the coordinator from the system of a server that was killed: nobody listens there any more.
  kGone,
  // The coordinator to a server.
  kCommand,
  // A shard's owner to its replica, and back, in order (Context::SendInOrder); and to the owner
  // that its stream has broken.
  kReplicate,
  kReplicated,
  kBroken,
  // Timers of a process.
  kApplied,
  kServerTick,
  kWorkerTick,
  kCoordinatorTick,
  kManifest,
  kWake,
  // Fate.
  kStart,
  kCrash,
  kReplace,
  kLeaveEarly,
  kPause,
  kPartition,
  kHeal,
  kStopJob,
  kKillServer,
  kStartServer,
  kKillCoordinator,
  // Of so many servers as `clock` says.
  kResize,
  // A server is to leave in order; `clock`: how often it has asked.
  kDrain,
  // The coordinator hears nobody for a while; all but server 0 and the coordinator stand still.
  kDeaf,
  kHush,
};
const char* KindName(Kind kind);

inline constexpr uint32_t kRefusedShift = 32;

// What the coordinator tells a server, in order (kCommand).
enum class Order : uint8_t { kConfigure, kSetLive, kCommit, kSave, kShutdown };

struct Message {
  Kind kind{};
  // kReply: to what.
  Kind answers{};
  NodeId from = 0;
  NodeId to = 0;
  uint8_t rank = 0;
  uint8_t block = 0;
  // Of the request that it is or answers: its place among the worker's calls, and which attempt.
  uint8_t call = 0;
  uint16_t attempt = 0;
  absl::StatusCode code = absl::StatusCode::kOk;
  bool duplicate = false;
  // kReply to kAttach: a block waits for its first version. kHeartbeatReply: a stop was asked for.
  // kSetLive: it lives. kHeld: told before. kReply that is UNAVAILABLE: the request waits on.
  bool flag = false;
  Order order{};
  // Of a worker's process: messages for another life are lost. kServerRegister: of the coordinator.
  uint32_t life = 0;
  // kCommand, kCommandDone: its place in the link. Timers: of the life they belong to.
  uint32_t sequence = 0;
  // Of the server's or the coordinator's process: what belongs to one that was killed is lost.
  uint32_t boot = 0;
  uint64_t incarnation = 0;
  uint64_t generation = 0;
  uint64_t clock = 0;
  // A contribution's values; kHeld, kCommit: ranks, a bit each, and of kHeld those refused from
  // kRefusedShift on; kReply to kAttach: contributions counted.
  uint64_t value = 0;
  // Where all stop, if has_stop.
  uint64_t stop_at = 0;
  bool has_stop = false;
  Version version;
};

Message Timer(Kind kind, NodeId node);
// From whom it went to, to whom it came from.
Message ReplyTo(const Message& request, absl::StatusCode code);

std::string Describe(const Message& message);

}  // namespace leeway::sim
