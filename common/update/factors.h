// Factors of learning rate and weight decay by kind of tensor (job.proto, TensorFactors), times
// those of single tensors (coordinator.proto, TensorSpec): which elements of the flat vector have
// which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/blocks.h"
#include "common/update/rule.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Of a model's trained elements, in order and without gaps from element 0; neighbours that have the
// same factors are one part. Empty where all factors are 1: whoever updates then has one part.
std::vector<UpdatePart> UpdatePartsOf(const v1::ModelSchema& schema, const v1::Update& update);

// The parts of them that lie in `range`, their ends counted from its beginning. Empty where `all`
// is, or nothing of `range` is trained.
std::vector<UpdatePart> PartsWithin(const std::vector<UpdatePart>& all, const ElementRange& range);

// Both factors of both at each element, which is skipped where one of them does so. They end at the
// same one, unless one is empty: that has 1 everywhere.
std::vector<UpdatePart> Multiplied(std::vector<UpdatePart> parts,
                                   std::span<const UpdatePart> others);

// Whether they are a contribution's rates (ContributionRates): none, or parts of all `trained`
// elements. INVALID_ARGUMENT names the part and what is wrong with it.
absl::Status CheckRates(std::span<const UpdatePart> parts, uint64_t trained);

// Whether there are parts, and all of them are skipped.
bool SkipsAll(std::span<const UpdatePart> parts);

}  // namespace leeway
