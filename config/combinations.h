// Checks that the choices of the three knobs, of workers and of servers are compatible.
#pragma once

#include <vector>

#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Adds a fault for each incompatible pair of choices, with the reason and what to change. The job
// is resolved, and its fields are valid.
void CheckCombinations(const v1::TrainingJob& job, std::vector<Fault>& faults);

}  // namespace leeway
