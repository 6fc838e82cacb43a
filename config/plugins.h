// How what plugins bring goes together with the rest of a job, as far as it can be told without
// opening them.
#pragma once

#include <vector>

#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

void CheckPlugins(const v1::TrainingJob& job, std::vector<Fault>& faults);

}  // namespace leeway
