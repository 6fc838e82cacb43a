// Checks a job's compression beyond the types and bounds of its fields.
#pragma once

#include <vector>

#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Finds layers that do not exist, have no weights or are named twice, and codecs that do not work
// with the exchange or the consistency. The job is resolved.
void CheckCompression(const v1::TrainingJob& job, std::vector<Fault>& faults);

}  // namespace leeway
