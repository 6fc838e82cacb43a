// Checks that a job's use of plugins is compatible with the rest of the job, as far as this can be
// checked without opening the plugins.
#pragma once

#include <vector>

#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

void CheckPlugins(const v1::TrainingJob& job, std::vector<Fault>& faults);

}  // namespace leeway
