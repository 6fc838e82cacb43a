// Merges two metrics records of one worker.
#pragma once

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Merges `more` into `record`. `more` is the later one of the two. The result has the sums of the
// counts and times, means weighted by examples, the largest staleness and the newest loss scale.
void MergeMetrics(const v1::StepMetrics& more, v1::StepMetrics& record);

}  // namespace leeway
