// A program's tensors as the coordinator knows them.
#pragma once

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/library/job.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Puts the tensors one after the other. INVALID_ARGUMENT, naming the tensor, if it has no name, no
// elements, or the name of another one, if it is trained and comes after an averaged one, or if its
// momentum or a factor is invalid.
absl::StatusOr<v1::ModelSchema> SchemaOf(std::span<const JobTensor> tensors);
// INVALID_ARGUMENT, naming the first tensor that differs between the job and the program.
absl::Status CheckSame(const v1::ModelSchema& own, const v1::ModelSchema& job);
// The inverse of SchemaOf.
std::vector<JobTensor> TensorsOf(const v1::ModelSchema& schema);

}  // namespace leeway
