// One life of a worker: does what worker/trainer.cc and the client below it do, with the real
// RetryCore for every call. A life that is replaced may go on for a while beside the newer one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "client/core/retry_core.h"
#include "tests/sim/context.h"

namespace leeway::sim {

class SimWorker {
 public:
  SimWorker(uint32_t rank, uint32_t life) : rank_(rank), life_(life) {
    for (uint32_t i = 0; i < kServersMax; ++i) owners_[i] = static_cast<NodeId>(kServer0 + i);
  }

  void Start(Context& context);
  void OnReply(Context& context, const Message& reply);
  // Whether this reply answers the current attempt. All other replies are ignored.
  bool Expects(const Message& reply) const {
    const Call& call = calls_[reply.call];
    return end_ == End::kNone && reply.life == life_ && call.open && call.in_flight &&
           call.attempt == reply.attempt;
  }
  void OnHeartbeatReply(Context& context, const Message& reply);
  void OnTick(Context& context);
  // Makes the worker leave early, as soon as it is between two exchanges.
  void AskToLeave() { leaving_ = true; }
  void Pause(Micros until) { paused_until_ = until; }
  // Exhaustive mode: the worker is registered and has the first version.
  void StartTraining(Context& context, uint64_t incarnation);

  enum class End : uint8_t {
    kNone,
    // The launcher starts the rank again.
    kDied,
    // It left early; the launcher may start the rank again.
    kWentEarly,
    kLeft,
  };
  End end() const { return end_; }
  uint32_t rank() const { return rank_; }
  uint32_t life() const { return life_; }
  uint64_t incarnation() const { return incarnation_; }
  uint64_t clock() const { return clock_; }
  bool registered() const { return incarnation_ > 0; }
  Micros paused_until() const { return paused_until_; }
  uint64_t Hash() const;
  std::string Where() const;

 private:
  enum class Phase : uint8_t {
    kRegister,
    kAttach,
    kInitialize,
    kRead,
    kPush,
    kPull,
    kExchange,
    kLatest,
    kStopAt,
    kState,
    kLeave,
  };
  struct Call {
    Kind kind{};
    NodeId to = 0;
    uint8_t block = 0;
    bool open = false;
    bool in_flight = false;
    uint16_t attempt = 0;
    uint64_t clock = 0;
    uint64_t value = 0;
    // When the first attempt began, by this worker's clock.
    Micros first = 0;
    Micros began = 0;
    Micros again = 0;
    std::optional<RetryCore> retry;
  };
  static constexpr size_t kCallsMax = kBlocksMax;

  // ---- calls
  void Open(Context& context, size_t index, Kind kind, NodeId to, uint32_t block, uint64_t clock);
  void Attempt(Context& context, size_t index);
  void Fail(Context& context, size_t index, absl::StatusCode code);
  void CheckRefused(Context& context, const Call& call, absl::StatusCode code);
  void Retry(Context& context, Call& call, absl::StatusCode code);
  void OpenAll(Context& context, Phase phase, Kind kind);
  void OpenOne(Context& context, Phase phase, Kind kind);
  bool IsOpen() const;

  // ---- the walk
  void Take(Context& context, const Call& call, const Message& reply);
  // The job has gone back: the worker registers again, and learns where to continue.
  void StartAgain(Context& context);
  // Committed sets: the others have gone on without this worker.
  void Rejoin(Context& context);
  void CheckCounted(Context& context);
  void Next(Context& context);
  void Registered(Context& context);
  void BeginClock(Context& context);
  void Completed(Context& context);
  void TakeOwners(const Message& reply);
  void TakeStop(Context& context, const Message& reply);
  void Leave(Context& context);
  void BreakOff(Context& context);
  bool Over(const Context& context) const;
  bool SavesState(const Context& context) const;
  void Finish(End end) { end_ = end; }
  void CheckSeen(Context& context, const Call& call, const Message& reply);
  bool IsAllowed(const Context& context, const Call& call, const Message& reply) const;

  uint32_t rank_;
  uint32_t life_;
  Phase phase_ = Phase::kRegister;
  End end_ = End::kNone;
  std::array<Call, kCallsMax> calls_;
  uint16_t attempts_ = 0;
  uint64_t incarnation_ = 0;
  uint64_t generation_ = 0;
  uint64_t clock_ = 0;
  // The owner of each shard, and the epoch since which it is the owner.
  std::array<NodeId, kServersMax> owners_{};
  uint64_t epoch_ = 0;
  bool needs_initialize_ = false;
  // The servers have said at which clock the worker continues.
  bool knows_clock_ = false;
  std::optional<uint64_t> left_at_;
  // Committed sets: the clock that the worker has given up, and how many of that clock's
  // contributions count.
  std::optional<uint64_t> given_up_;
  uint64_t counted_ = 0;
  // The versions with which the clock started, and those that were read in it.
  std::array<Version, kBlocksMax> read_{};
  std::array<Version, kBlocksMax> reading_{};
  bool leaving_ = false;
  bool finished_ = false;
  bool stop_requested_ = false;
  bool asked_ = false;
  std::optional<uint64_t> stop_at_;
  std::optional<uint64_t> saved_;
  Micros paused_until_ = 0;
  uint32_t ticks_ = 0;
};

}  // namespace leeway::sim
