// The update rule that the program of an external job supplies with its registration. It is the
// rule of the program's own optimizer.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Reads a rule as a job's `update` gives it: "{type: sgd, learning_rate: 0.1}". The result has no
// defaults. INVALID_ARGUMENT lists the mistakes; messages begin with "update".
absl::StatusOr<v1::Update> ParseUpdate(std::string_view yaml);
// The inverse, in one line and without defaults.
std::string UpdateYaml(const v1::Update& update);

// Resolves the rule that a worker's registration supplies for its own optimizer: the result has
// every default, as in a job. INVALID_ARGUMENT if it breaks the rules of a job's `update`, or if it
// is a plugin's rule.
absl::StatusOr<v1::Update> ResolveBroughtUpdate(const v1::Update& brought);
// True if a worker that supplies `brought` means `rule`, which is resolved. Optimizers know no
// schedule, factors, scaling or average: if `brought` does not mention one, that of `rule` counts.
bool MeansRule(const v1::Update& brought, const v1::Update& rule);

}  // namespace leeway
