// Merges two records of one worker.
#pragma once

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Adds `more`, which happened after `record`, to it: sums, means weighted by examples, the largest
// staleness, the newest loss scale.
void MergeMetrics(const v1::StepMetrics& more, v1::StepMetrics& record);

}  // namespace leeway
