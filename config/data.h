// Checks the `data` of a job.
#pragma once

#include <vector>

#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Adds the faults of single keys. The job need not be resolved.
void CheckDataFields(const v1::Data& data, std::vector<Fault>& faults);
// Adds the faults of combinations of sources, partition, augmentation, loss and evaluation. The job
// is resolved. Does not look for faults that show only in the data itself.
void CheckData(const v1::TrainingJob& job, std::vector<Fault>& faults);

}  // namespace leeway
