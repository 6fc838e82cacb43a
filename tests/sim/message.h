// Everything that can happen in a simulated world, as one plain struct: a message, a timer or a
// fault.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "tests/sim/shape.h"

namespace leeway::sim {

// A version of a block: the exact set of its contributions, and one number that stands for its
// values.
struct Version {
  uint64_t number = 0;
  uint64_t values = 0;
  // By rank: bit c stands for the contribution of clock c.
  std::array<uint64_t, kRanksMax> clocks{};
  bool operator==(const Version&) const = default;
};

// The set of clocks below `clock`.
inline uint64_t Below(uint64_t clock) {
  return clock >= 64 ? ~uint64_t{0} : (uint64_t{1} << clock) - 1;
}

inline uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t z = (a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// Names a sender or receiver: first the ranks, then the servers, then the coordinator.
using NodeId = uint8_t;
inline constexpr NodeId kServer0 = kRanksMax;
inline constexpr NodeId kCoordinator = kServer0 + kServersMax;
inline constexpr uint32_t kNodes = kCoordinator + 1;
std::string NodeName(NodeId node);

enum class Kind : uint8_t {
  // From a worker to a server, which answers with kReply.
  kAttach,
  kInitialize,
  kPush,
  kPushPull,
  kPull,
  kLatest,
  // From a worker to the coordinator, which answers kHeartbeat with kHeartbeatReply and the others
  // with kReply.
  kRegister,
  kStopAt,
  kLeave,
  kState,
  kHeartbeat,
  kReply,
  kHeartbeatReply,
  // From a server to the coordinator.
  kServerRegister,
  kServerHeartbeat,
  kShardSaved,
  kHeld,
  kCommandDone,
  // From the system of a killed server to the coordinator: nobody listens there any more.
  kGone,
  // From the coordinator to a server.
  kCommand,
  // From a shard's owner to its replica and back, in order (Context::SendInOrder). kBroken tells
  // the owner that its stream has broken.
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
  // Faults, and other events from outside.
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
  // The job is to have `clock` servers.
  kResize,
  // A server is to leave in order. `clock`: how often it has asked.
  kDrain,
  // kDeaf: the coordinator hears nobody for a while. kHush: all but server 0 and the coordinator
  // stand still.
  kDeaf,
  kHush,
};
const char* KindName(Kind kind);

inline constexpr uint32_t kRefusedShift = 32;

// What the coordinator tells a server, in order (kCommand).
enum class Order : uint8_t { kConfigure, kSetLive, kCommit, kSave, kShutdown };

struct Message {
  Kind kind{};
  // kReply: the kind of the request.
  Kind answers{};
  NodeId from = 0;
  NodeId to = 0;
  uint8_t rank = 0;
  uint8_t block = 0;
  // Which of the worker's calls the request belongs to, and which attempt it is. A reply repeats
  // both.
  uint8_t call = 0;
  uint16_t attempt = 0;
  absl::StatusCode code = absl::StatusCode::kOk;
  bool duplicate = false;
  // kReply to kAttach: a block waits for its first version. kHeartbeatReply: a stop was asked for.
  // kSetLive: the rank lives. kHeld: it was reported before. kReply that is UNAVAILABLE: the
  // request goes on waiting.
  bool flag = false;
  Order order{};
  // The life of the worker's process: messages for another life are lost. kServerRegister: the
  // coordinator's life.
  uint32_t life = 0;
  // kCommand, kCommandDone: the command's number on its link. Timers: the life that they belong to.
  uint32_t sequence = 0;
  // The number of the server's or coordinator's process. Messages of a killed process are lost.
  uint32_t boot = 0;
  uint64_t incarnation = 0;
  uint64_t generation = 0;
  uint64_t clock = 0;
  // A contribution's values. kHeld, kCommit: one bit for each rank; kHeld has refused ranks from
  // bit kRefusedShift on. kReply to kAttach: the number of counted contributions.
  uint64_t value = 0;
  // The clock at which all workers stop, if has_stop.
  uint64_t stop_at = 0;
  bool has_stop = false;
  Version version;
};

Message Timer(Kind kind, NodeId node);
// Swaps sender and receiver of the request.
Message ReplyTo(const Message& request, absl::StatusCode code);

std::string Describe(const Message& message);

}  // namespace leeway::sim
