// Interprets the coordinator's answers while `leeway resize` waits. Pure: no calls, no clock.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The command keeps waiting if the job goes back to a checkpoint or its coordinator is being
// restarted. It gives up if the job is over or is being stopped.
class ResizeWatch {
 public:
  // The job had `before` servers, and the user has requested `servers`.
  ResizeWatch(uint32_t before, uint32_t servers) : before_(before), servers_(servers) {}

  struct Step {
    bool done = false;
    // Whether to send the request again, because the restarted coordinator does not know it.
    bool ask_again = false;
    // The steps of the resize that are still to come, as text for a person.
    std::string pending;
  };
  // Call this function with each status. Returns FAILED_PRECONDITION if the resize will not happen,
  // and ABORTED if somebody has requested another number of servers meanwhile.
  absl::StatusOr<Step> OnStatus(const v1::JobStatus& status);
  // Call this when the coordinator has not answered, because of `why`.
  Step OnSilence(const absl::Status& why);

 private:
  const uint32_t before_;
  const uint32_t servers_;
  // Whether the coordinator may have restarted since it received the request.
  bool interrupted_ = false;
};

}  // namespace leeway
