// Jobs whose workers are programs of the user's own, such as PyTorch scripts (model.type:
// external). Such a job does not describe layers and files. The first worker that registers defines
// the model's tensors. For a gradient exchange that worker may also supply the servers' rule.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

bool IsExternal(const v1::TrainingJob& job);
// Returns true if the first worker that registers supplies the servers' rule. That is so in an
// external job with a gradient exchange and no `update`.
bool BringsUpdate(const v1::TrainingJob& job);

// Returns FAILED_PRECONDITION for an external job, because `who`, such as "leeway-worker", cannot
// compute its model.
absl::Status CheckHasLayers(const v1::TrainingJob& job, const std::string& who);

// Adds a fault for each missing key that this kind of job (external or not) needs, and for each key
// that has no effect in it. The job need not be resolved.
void CheckExternal(const v1::TrainingJob& job, std::vector<Fault>& faults);

}  // namespace leeway
