// Two records of one worker as one.
#pragma once

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// `more` happened after `record`: sums, means weighted by examples, the largest staleness, the
// newest loss scale.
void MergeMetrics(const v1::StepMetrics& more, v1::StepMetrics& record);

}  // namespace leeway
