// Converts between a program's tensors and the coordinator's schema.
#pragma once

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/v1/coordinator.pb.h"
#include "library/job.h"

namespace leeway {

// Lays out the tensors one after the other. Returns INVALID_ARGUMENT, naming the tensor, in these
// cases: a tensor has no name, no elements, or the name of another tensor; a trained tensor comes
// after an averaged one; a momentum or a factor is invalid.
absl::StatusOr<v1::ModelSchema> SchemaOf(std::span<const JobTensor> tensors);
// Returns INVALID_ARGUMENT if the two schemas differ, naming the first tensor that differs between
// the job and the program.
absl::Status CheckSame(const v1::ModelSchema& own, const v1::ModelSchema& job);
// Returns the tensors of a schema; the inverse of SchemaOf.
std::vector<JobTensor> TensorsOf(const v1::ModelSchema& schema);

}  // namespace leeway
