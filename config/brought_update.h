// The update rule that the program of an external job brings with its registration, as the
// optimizer that it has.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

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
