// How `leeway resize` interprets the coordinator's answers while it waits. Pure: no calls, no
// clock.
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
  // The job had `before` servers and was asked for `servers`.
  ResizeWatch(uint32_t before, uint32_t servers) : before_(before), servers_(servers) {}

  struct Step {
    bool done = false;
    // Whether to send the request again, because the restarted coordinator does not know it.
    bool ask_again = false;
    // What is still to happen, as text for a person.
    std::string pending;
  };
  // Returns FAILED_PRECONDITION if the resize will not happen, and ABORTED if somebody has
  // requested another number of servers.
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
