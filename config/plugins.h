// Checks how the parts that plugins supply go together with the rest of a job, as far as this can
// be told without opening the plugins.
#pragma once

#include <vector>

#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

void CheckPlugins(const v1::TrainingJob& job, std::vector<Fault>& faults);

}  // namespace leeway
