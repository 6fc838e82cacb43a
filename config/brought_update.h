// The update rule that the program of an external job supplies with its registration. It is the
// rule of the program's own optimizer.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Reads a rule in the YAML of a job's `update`: "{type: sgd, learning_rate: 0.1}". The result has
// no defaults. Returns INVALID_ARGUMENT if the rule has mistakes. The message has one line for
// each, which begins with "update".
absl::StatusOr<v1::Update> ParseUpdate(std::string_view yaml);
// Writes a rule as such YAML, in one line and without defaults.
std::string UpdateYaml(const v1::Update& update);

// Resolves the rule that a worker supplies when it registers, the rule of its own optimizer. The
// result has every default, as in a job. Returns INVALID_ARGUMENT if the rule would not be valid as
// a job's `update`, or if it is a plugin's rule.
absl::StatusOr<v1::Update> ResolveBroughtUpdate(const v1::Update& brought);
// Returns true if `brought`, which a worker supplies, is the same rule as `rule`, which is
// resolved. Optimizers have no schedule, factors, scaling or average. The comparison ignores each
// of these that `brought` does not set.
bool MeansRule(const v1::Update& brought, const v1::Update& rule);

}  // namespace leeway
