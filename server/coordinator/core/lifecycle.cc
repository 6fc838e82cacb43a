#include "server/coordinator/core/lifecycle.h"

namespace leeway {

v1::JobState Lifecycle::state(v1::JobState outcome) const {
  switch (phase_) {
    case Phase::kStarting:
      return v1::JOB_STARTING;
    case Phase::kGoingBack:
    case Phase::kRunning:
      return v1::JOB_RUNNING;
    case Phase::kStopping:
    case Phase::kSaving:
      return v1::JOB_STOPPING;
    case Phase::kShutdown:
    case Phase::kOver:
      break;
  }
  return outcome;
}

void Lifecycle::Begin(Time now) {
  phase_ = Phase::kRunning;
  began_ = now;
}

void Lifecycle::GoBack(const std::string& why, Time now) {
  phase_ = Phase::kGoingBack;
  going_back_since_ = now;
  going_back_why_ = why;
  ++generation_;
}

}  // namespace leeway
