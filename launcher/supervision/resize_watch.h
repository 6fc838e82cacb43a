// How `leeway resize` interprets what it hears while it waits. Pure: no calls, no clock.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// A job that goes back to a checkpoint, or whose coordinator is being started again, is waited for;
// one that is over or is being stopped is not.
class ResizeWatch {
 public:
  // The job had `before` servers and was asked for `servers`.
  ResizeWatch(uint32_t before, uint32_t servers) : before_(before), servers_(servers) {}

  struct Step {
    bool done = false;
    // The coordinator was restarted and does not know the request. Send it again.
    bool ask_again = false;
    // For a person: what is still to happen.
    std::string pending;
  };
  // FAILED_PRECONDITION if it will not happen. ABORTED if somebody has requested another number.
  absl::StatusOr<Step> OnStatus(const v1::JobStatus& status);
  // The coordinator has not answered, because of `why`.
  Step OnSilence(const absl::Status& why);

 private:
  const uint32_t before_;
  const uint32_t servers_;
  // The coordinator may be another one than the one that was asked.
  bool interrupted_ = false;
};

}  // namespace leeway
