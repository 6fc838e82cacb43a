// Jobs whose workers are programs of the user's own, such as PyTorch scripts (model.type:
// external). Such a job says nothing of layers and files: the first worker that registers says
// which tensors there are, and for a gradient exchange it may bring the servers' rule as well.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

// A rule as a job's `update` says it: "{type: sgd, learning_rate: 0.1}". INVALID_ARGUMENT lists
// what is wrong; messages begin with "update". Defaults are not in it.
absl::StatusOr<v1::Update> ParseUpdate(std::string_view yaml);
// The inverse, in one line and without defaults.
std::string UpdateYaml(const v1::Update& update);

// What a worker's registration brings as the rule of its own optimizer, as a job could have it,
// with every default. INVALID_ARGUMENT: it breaks the rules of a job's `update`, or is a plugin's.
absl::StatusOr<v1::Update> ResolveBroughtUpdate(const v1::Update& brought);
// Whether a worker that brings `brought` means `rule`, which is resolved. A schedule, factors, a
// scaling and an average that it does not mention are as in `rule`: optimizers know of none.
bool MeansRule(const v1::Update& brought, const v1::Update& rule);

}  // namespace leeway
