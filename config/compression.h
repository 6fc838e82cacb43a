// What a job's compression must hold beyond its shape.
#pragma once

#include <vector>

#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Layers that do not exist, have no weights or are named twice; codecs that the exchange or the
// consistency cannot bear. The job is resolved.
void CheckCompression(const v1::TrainingJob& job, std::vector<Fault>& faults);

}  // namespace leeway
