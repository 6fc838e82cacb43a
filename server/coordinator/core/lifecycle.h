// In which phase the job is, in which generation, and since when. Owns these; must be told of every
// change, for what a change takes is decided elsewhere (coordinator_core.h has the phases' order).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/hearing.h"

namespace leeway {

// In the order in which a job goes through them, but that it goes back from the ones after.
enum class Phase { kStarting, kGoingBack, kRunning, kStopping, kSaving, kShutdown, kOver };

// For the servers to hear that the job is over.
inline constexpr Duration kShutdownLimit = std::chrono::seconds(5);

// Pure; not thread-safe.
class Lifecycle {
 public:
  // `generation`: of the job so far.
  Lifecycle(uint64_t generation, Time now)
      : generation_(generation), created_(now), hearing_(now) {}

  Phase phase() const { return phase_; }
  void Enter(Phase phase) { phase_ = phase; }
  // Blocks are made, and the job is not over: running, stopping or saving.
  bool under_way() const { return phase_ > Phase::kGoingBack && phase_ < Phase::kShutdown; }
  // How the job is to be called. `outcome`: its last state.
  v1::JobState state(v1::JobState outcome) const;

  Time created() const { return created_; }
  // When exchanges could begin.
  const std::optional<Time>& began() const { return began_; }
  void Begin(Time now);

  uint64_t generation() const { return generation_; }
  // That of the coordinator before, which the servers still hold.
  void TakeUp(uint64_t generation) { generation_ = generation; }
  // A new generation begins.
  void GoBack(const std::string& why, Time now);
  // Since when it goes back, and why.
  Time going_back_since() const { return going_back_since_; }
  const std::string& going_back_why() const { return going_back_why_; }

  Hearing& hearing() { return hearing_; }

  // Until when servers and workers may take to hear that the job is over.
  Time shutdown_until() const { return shutdown_until_; }
  void WaitForShutdown(Time until) { shutdown_until_ = until; }

 private:
  Phase phase_ = Phase::kStarting;
  uint64_t generation_;
  const Time created_;
  std::optional<Time> began_;
  Time going_back_since_;
  std::string going_back_why_;
  Time shutdown_until_;
  Hearing hearing_;
};

}  // namespace leeway
