// Jobs whose workers are programs of the user's own, such as PyTorch scripts (model.type:
// external). Such a job does not describe layers and files. The first worker that registers says
// which tensors the model has. For a gradient exchange it may supply the servers' rule as well.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

bool IsExternal(const v1::TrainingJob& job);
// True if the servers' rule comes with the first registration: in an external job with a gradient
// exchange and no `update`.
bool BringsUpdate(const v1::TrainingJob& job);

// FAILED_PRECONDITION for an external job: it gives `who`, such as "leeway-worker", no model to
// compute.
absl::Status CheckHasLayers(const v1::TrainingJob& job, const std::string& who);

// Finds missing keys that a job needs because it is external, or because it is not, and keys that
// have no effect in it. The job need not be resolved.
void CheckExternal(const v1::TrainingJob& job, std::vector<Fault>& faults);

}  // namespace leeway
