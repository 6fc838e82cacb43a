// Checks a model's schema that a worker sends: it must be valid, and the same as the job's.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The most elements of a model (1 TiB of weights). This bounds what a malformed schema can make
// servers allocate.
inline constexpr uint64_t kModelElementsMax = uint64_t{1} << 38;

// Returns INVALID_ARGUMENT unless all of these conditions hold: the tensors have distinct names and
// follow each other from element 0 to `total`; momenta are in (0, 1]; kinds are known; factors are
// within their bounds; `trained` is the beginning of a tensor or the end.
absl::Status ValidateSchema(const v1::ModelSchema& schema);

// Returns FAILED_PRECONDITION if the schemas differ. The error names the first tensor that differs,
// and describes that tensor of each owner ("worker 0", "the checkpoint"). Momentum, kind and
// factors are ignored, because a job may be resumed with other momenta and factors, and checkpoints
// of older versions have no kinds.
absl::Status CompareSchemas(const std::string& expected_owner, const v1::ModelSchema& expected,
                            const std::string& actual_owner, const v1::ModelSchema& actual);

// Returns FAILED_PRECONDITION if the tensors' factors differ. CompareSchemas must have found the
// schemas equal.
absl::Status CompareFactors(const std::string& expected_owner, const v1::ModelSchema& expected,
                            const std::string& actual_owner, const v1::ModelSchema& actual);

// Copies the momenta, kinds and factors of the tensors from `from` to `to`. CompareSchemas must
// have found the schemas equal.
void TakeTraits(const v1::ModelSchema& from, v1::ModelSchema& to);

}  // namespace leeway
