// Jobs whose workers are programs of the user's own, such as PyTorch scripts (model.type:
// external). Such a job says nothing of layers and files: the first worker that registers says
// which tensors there are, and for a gradient exchange it may bring the servers' rule as well.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

bool IsExternal(const v1::TrainingJob& job);
// The servers' rule is to come with the first registration: an external job with a gradient
// exchange and no `update`.
bool BringsUpdate(const v1::TrainingJob& job);

// FAILED_PRECONDITION for an external job: `who`, such as "leeway-worker", has no model to compute.
absl::Status CheckHasLayers(const v1::TrainingJob& job, const std::string& who);

// Keys that a job needs because it is external, or because it is not, and those that would do
// nothing in one. Makes sense before the job is resolved.
void CheckExternal(const v1::TrainingJob& job, std::vector<Fault>& faults);

}  // namespace leeway
