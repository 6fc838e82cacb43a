// What a job says of its data.
#pragma once

#include <vector>

#include "config/rules.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Adds what is wrong with single keys of it. The job need not be resolved.
void CheckDataFields(const v1::Data& data, std::vector<Fault>& faults);
// Adds what does not go together: sources, partition, augmentation, loss, evaluation. The job is
// resolved. What only the data can tell is not looked at.
void CheckData(const v1::TrainingJob& job, std::vector<Fault>& faults);

}  // namespace leeway
