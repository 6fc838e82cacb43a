// Says in words with whom the workers of a job exchange, and how many bytes, if they hold the
// blocks (topology).
#pragma once

#include <optional>
#include <string>

#include "launcher/doctor/traffic.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns lines for `leeway plan`. `traffic` is one exchange of a worker with all holders. If it is
// absent, because the model is not known yet, amounts are multiples of the model's size. Returns an
// empty string if servers hold the blocks.
std::string PeerTrafficText(const v1::TrainingJob& job,
                            const std::optional<PlannedTraffic>& traffic);

}  // namespace leeway
