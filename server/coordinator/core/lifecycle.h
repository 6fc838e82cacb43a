// Owns the job's phase and generation, and the times at which they changed. The core must report
// every change here. Other parts decide what a change requires. coordinator_core.h describes the
// phases.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/hearing.h"

namespace leeway {

// In the order in which a job goes through them. From kRunning, kStopping and kSaving the job can
// return to kGoingBack.
enum class Phase { kStarting, kGoingBack, kRunning, kStopping, kSaving, kShutdown, kOver };

// The time limit for the servers to hear that the job is over.
inline constexpr Duration kShutdownLimit = std::chrono::seconds(5);

// Pure; not thread-safe.
class Lifecycle {
 public:
  // `generation`: the generation in which the job begins.
  Lifecycle(uint64_t generation, Time now)
      : generation_(generation), created_(now), hearing_(now) {}

  Phase phase() const { return phase_; }
  void Enter(Phase phase) { phase_ = phase; }
  // Returns true while the job is running, stopping or saving, so that blocks exist and the job is
  // not over.
  bool under_way() const { return phase_ > Phase::kGoingBack && phase_ < Phase::kShutdown; }
  // Returns the state to show for the job. `outcome` is the job's last state, if the job is over.
  v1::JobState state(v1::JobState outcome) const;

  Time created() const { return created_; }
  // Returns when exchanges became possible; nullopt while they are not possible yet.
  const std::optional<Time>& began() const { return began_; }
  void Begin(Time now);

  uint64_t generation() const { return generation_; }
  // Continues the previous coordinator's generation, because the servers still hold its blocks.
  void TakeUp(uint64_t generation) { generation_ = generation; }
  // Begins a new generation.
  void GoBack(const std::string& why, Time now);
  Time going_back_since() const { return going_back_since_; }
  const std::string& going_back_why() const { return going_back_why_; }

  Hearing& hearing() { return hearing_; }

  // The deadline for servers and workers to hear that the job is over.
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
