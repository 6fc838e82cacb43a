// The model's schema as workers hand it in: is it sound, is it the job's?
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Elements of a model at most (1 TiB of weights): bounds what a malformed schema can make servers
// ask for.
inline constexpr uint64_t kModelElementsMax = uint64_t{1} << 38;

// INVALID_ARGUMENT unless the tensors are named, distinct, lie one after the other from element 0
// to `total`, momenta are in (0, 1], kinds are known, factors within their bounds, and `trained`
// falls on a tensor's beginning or the end.
absl::Status ValidateSchema(const v1::ModelSchema& schema);

// FAILED_PRECONDITION naming the first tensor that differs and what each side ("worker 0", "the
// checkpoint") has there. Momentum, kind and factors are no part of the model: a job may be resumed
// with others, and checkpoints of older versions have no kinds.
absl::Status CompareSchemas(const std::string& expected_owner, const v1::ModelSchema& expected,
                            const std::string& actual_owner, const v1::ModelSchema& actual);

// The same of the tensors' factors. The schemas compare equal.
absl::Status CompareFactors(const std::string& expected_owner, const v1::ModelSchema& expected,
                            const std::string& actual_owner, const v1::ModelSchema& actual);

// Gives the tensors of `to` the momenta, kinds and factors that those of `from` say. The schemas
// compare equal.
void TakeTraits(const v1::ModelSchema& from, v1::ModelSchema& to);

}  // namespace leeway
