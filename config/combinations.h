// Checks which choices of the three knobs, of workers and of servers go together.
#pragma once

#include <vector>

#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// For a resolved job whose fields are valid. Each fault says why two choices do not go together,
// and what to change.
void CheckCombinations(const v1::TrainingJob& job, std::vector<Fault>& faults);

}  // namespace leeway
