// A program's tensors as the coordinator knows them.
#pragma once

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/library/job.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// One behind the other. INVALID_ARGUMENT, naming the tensor: no name or one that is there twice, no
// elements, a trained one behind an averaged one, a momentum or factor that is none.
absl::StatusOr<v1::ModelSchema> SchemaOf(std::span<const JobTensor> tensors);
// INVALID_ARGUMENT, naming the first tensor that is another one in the job than in the program.
absl::Status CheckSame(const v1::ModelSchema& own, const v1::ModelSchema& job);
// The inverse of SchemaOf.
std::vector<JobTensor> TensorsOf(const v1::ModelSchema& schema);

}  // namespace leeway
