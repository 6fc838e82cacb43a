// What all simulated processes share: the clock, the network with its faults, and the list of
// broken promises. It can be copied, so that the exhaustive mode can branch.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/philox.h"
#include "leeway/v1/coordinator.pb.h"
#include "tests/sim/counts.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/message.h"
#include "tests/sim/set_history.h"
#include "tests/sim/shape.h"

namespace leeway::sim {

// These limits are large against the rest: a round trip takes half a millisecond, an update a
// tenth.
inline constexpr Micros kWaitLimit = 4000;  // a server refuses a waiting request then
inline constexpr Micros kServerTickEvery = 2000;
inline constexpr Micros kWorkerTickEvery = 2500;
inline constexpr Micros kCoordinatorTickEvery = 4000;
inline constexpr Micros kAttemptLimit = 7000;  // a worker asks again then
inline constexpr Micros kLease = 9000;
// How long a server waits for a committed set before it reports its contributions again.
inline constexpr Micros kHeldAgain = 9000;
inline constexpr Micros kRestartAfter = 1000;
// How long the job may take to end, once all faults are over.
inline constexpr Micros kFinishWithin = 400'000;
// The coordinator waits five seconds, by its own clock, until servers and workers have heard of the
// end.
inline constexpr Micros kWholeFinishWithin = 8'000'000;

// With replicas: what servers of the newest generation have sent.
struct Ledger {
  uint64_t generation = 0;
  // By shard: the newest owner's epoch.
  std::array<uint64_t, kServersMax> epochs{};
  // By block: the newest version that was sent.
  std::array<uint64_t, kBlocksMax> versions{};
  // By block and rank: the acknowledged clocks, one bit each.
  std::array<std::array<uint64_t, kRanksMax>, kBlocksMax> acknowledged{};
  // By block: the version that the newest owner began with.
  std::array<Version, kBlocksMax> taken{};
};

class Context {
 public:
  Context(const Shape& job, const Faults& what, Bug broken, uint64_t seed)
      : shape(job), faults(what), bug(broken), draws(seed, RandomPurpose::kGenerate, {3}) {
    rates_.fill(128);
    if (!faults.skew) return;
    for (uint32_t node = 0; node < kNodes; ++node) {
      const auto rate = 100 + static_cast<int32_t>(draws.NextU32() % 57);
      // A lease relies on two clocks that run at the same rate.
      if (!shape.moves() || node < kServer0) rates_[node] = rate;
      offsets_[node] = static_cast<Micros>(draws.NextU32() % 1'000'000);
    }
  }

  // ---- time
  // The time that the node's clock shows.
  Micros LocalNow(NodeId node) const { return offsets_[node] + now * rates_[node] / 128; }
  Time LocalTime(NodeId node) const { return Time() + std::chrono::microseconds(LocalNow(node)); }
  // Sets a timer for `local`, measured by the node's clock.
  void After(NodeId node, Micros local, Message timer) {
    timer.from = timer.to = node;
    Push(now + local * 128 / rates_[node], timer);
  }

  // ---- the network
  void Send(const Message& message) {
    if (by_choice) return Push(0, message);
    const uint32_t dice = draws.NextU32();
    if (healed) return Push(now + 100 + (dice & 0xff), message);
    if (now < cut_until_[message.from][message.to]) return;
    if ((dice & 0xff) < faults.drop) return;
    const bool slow = (dice >> 8 & 0xff) < faults.slow;
    Push(now + 100 + (dice >> 24) + (slow ? draws.NextU32() % 12'000 : 0), message);
    if ((dice >> 16 & 0xff) < faults.duplicate) {
      Push(now + 100 + draws.NextU32() % (slow ? 20'000 : 1000), message);
    }
  }
  // Sends on a stream. A lost message breaks the stream, and the owner of the shard, which opened
  // the stream, hears of that a while later.
  void SendInOrder(const Message& message) {
    const uint32_t dice = draws.NextU32();
    const bool lost =
        !healed && (now < cut_until_[message.from][message.to] || (dice & 0xff) < faults.drop / 2);
    if (lost) return Break(message);
    const bool slow = !healed && (dice >> 8 & 0xff) < faults.slow;
    Micros& last = last_on_[{message.sequence, message.kind}];
    last = std::max(last + 1, now + 100 + (dice >> 24) + (slow ? draws.NextU32() % 12'000 : 0));
    const bool belated = message.kind == Kind::kReplicate && belated_.from == message.from &&
                         belated_.begins <= now && now < belated_.ends;
    Push(belated ? belated_.arrives : last, message);
  }
  void Break(const Message& message) {
    Message broken = message;
    broken.kind = Kind::kBroken;
    if (message.kind == Kind::kReplicate) broken.to = message.from;
    broken.from = broken.to;
    Push(now + 500, broken);
  }
  // The connections of the server's process are cut. In three networks of four the coordinator
  // notices.
  void SeeGone(uint32_t server, uint32_t boot) {
    const uint64_t dice = Mix(static_cast<uint64_t>(now), server);
    if (shape.replicas < 2 || dice % 4 == 0) return;
    Message gone = Timer(Kind::kGone, kCoordinator);
    gone.from = static_cast<NodeId>(kServer0 + server);
    gone.boot = boot;
    gone.life = static_cast<uint32_t>(counts.coordinator_kills);
    Push(now + 100 + static_cast<Micros>(dice >> 8 & 0x7ff), gone);
  }
  void Cut(NodeId from, NodeId to, Micros until) { cut_until_[from][to] = until; }
  // Everything that the server sends to its replicas in this time arrives at once.
  struct Belated {
    NodeId from = 0;
    Micros begins = 0;
    Micros ends = 0;
    Micros arrives = 0;
  };
  void Delay(const Belated& belated) { belated_ = belated; }

  // ---- events, earliest first; by choice, all that may happen next
  void Push(Micros at, const Message& message) {
    by_choice ? events.Append(message) : events.Push(at, message);
  }
  // Returns the event's slot, which the caller has to give back.
  uint32_t Pop() {
    const EventQueue::Next next = events.Pop();
    now = std::max(now, next.at);
    return next.slot;
  }

  // ---- promises
  // Only the first broken promise is kept.
  template <typename Text>
  void Violate(const char* promise, const Text& text) {
    if (!violation.empty()) return;
    violation = std::string(promise) + ": " + text();
  }
  bool Chance(uint32_t in_256) { return (draws.NextU32() & 0xff) < in_256; }

  Shape shape;
  Faults faults;
  Bug bug;
  RandomStream draws;
  EventQueue events;
  Micros now = 0;
  bool healed = false;
  // Exhaustive mode: events have no time, and each pending one may be next.
  bool by_choice = false;
  std::string violation;
  // By rank: the newest incarnation that the coordinator has given out.
  std::array<uint64_t, kRanksMax> newest{};
  // The newest generation that the coordinator has begun, and the clock at which each one began.
  uint64_t generation = 0;
  std::map<uint64_t, uint64_t> began_at;
  // The placements that commands refer to.
  std::vector<v1::Placement> placements;
  // By generation and epoch: the owner of each shard.
  std::map<std::pair<uint64_t, uint64_t>, std::array<uint32_t, kServersMax>> owners;
  // By clock and shard: the hashes of the files in complete checkpoints.
  std::map<std::pair<uint64_t, uint32_t>, uint64_t> cut_hashes;
  // The previous versions that new replicas were sent with their first state. A message holds the
  // index + 1.
  std::vector<Version> versions_before;
  uint32_t instances = 0;
  // By server: the number of the process that lives now, or that comes next.
  std::array<uint32_t, kServersMax> boots{};
  Ledger ledger;
  Counts counts;
  // With committed sets only.
  SetHistory sets;

 private:
  std::array<int32_t, kNodes> rates_{};
  std::array<Micros, kNodes> offsets_{};
  std::array<std::array<Micros, kNodes>, kNodes> cut_until_{};
  // By stream and direction: when the last message arrives.
  std::map<std::pair<uint32_t, Kind>, Micros> last_on_;
  Belated belated_;
};

}  // namespace leeway::sim
