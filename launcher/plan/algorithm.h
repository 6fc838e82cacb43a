// Names the algorithm of a job.
#pragma once

#include <string>

#include "leeway/v1/job.pb.h"

namespace leeway {

// Describes the algorithm, for example "bounded staleness 3, gradient exchange, sgd".
std::string DescribeAlgorithm(const v1::TrainingJob& job);

}  // namespace leeway
