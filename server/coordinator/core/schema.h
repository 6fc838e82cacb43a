// Checks the model's schema that workers hand in: that it is valid, and that it is the job's.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The most elements of a model (1 TiB of weights). This bounds what a malformed schema can make
// servers allocate.
inline constexpr uint64_t kModelElementsMax = uint64_t{1} << 38;

// INVALID_ARGUMENT unless all of this holds: the tensors have distinct names and follow each other
// from element 0 to `total`; momenta are in (0, 1]; kinds are known; factors are within their
// bounds; `trained` is the beginning of a tensor or the end.
absl::Status ValidateSchema(const v1::ModelSchema& schema);

// FAILED_PRECONDITION naming the first tensor that differs, and what each side ("worker 0", "the
// checkpoint") has there. Momentum, kind and factors are ignored: a job may be resumed with other
// ones, and checkpoints of older versions have no kinds.
absl::Status CompareSchemas(const std::string& expected_owner, const v1::ModelSchema& expected,
                            const std::string& actual_owner, const v1::ModelSchema& actual);

// The same for the tensors' factors. The schemas must compare equal.
absl::Status CompareFactors(const std::string& expected_owner, const v1::ModelSchema& expected,
                            const std::string& actual_owner, const v1::ModelSchema& actual);

// Copies the momenta, kinds and factors of the tensors from `from` to `to`. The schemas must
// compare equal.
void TakeTraits(const v1::ModelSchema& from, v1::ModelSchema& to);

}  // namespace leeway
