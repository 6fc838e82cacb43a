// Factors of learning rate and weight decay. A kind of tensor has factors (job.proto,
// TensorFactors), and so does a single tensor (coordinator.proto, TensorSpec). They are multiplied.
// The functions here find the factors of each element of the flat vector.
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

// Returns parts that cover a model's trained elements, in order and without gaps from element 0.
// Neighbours with the same factors are one part. Returns no parts if all factors are 1; an update
// then treats all elements as one part.
std::vector<UpdatePart> UpdatePartsOf(const v1::ModelSchema& schema, const v1::Update& update);

// Returns the parts of `all` that lie in `range`, with their ends counted from the beginning of
// `range`. Returns no parts if `all` is empty or if no element of `range` is trained.
std::vector<UpdatePart> PartsWithin(const std::vector<UpdatePart>& all, const ElementRange& range);

// Returns parts with the product of the factors in `parts` and in `others` at each element. An
// element is skipped if either list skips it. Both lists end at the same element, unless one is
// empty: an empty list stands for the factor 1 everywhere.
std::vector<UpdatePart> Multiplied(std::vector<UpdatePart> parts,
                                   std::span<const UpdatePart> others);

// Checks that `parts` can be a contribution's rates (ContributionRates): there are no parts, or
// they cover all `trained` elements. Returns INVALID_ARGUMENT with the part and its mistake.
absl::Status CheckRates(std::span<const UpdatePart> parts, uint64_t trained);

// Returns whether there are parts and all of them are skipped.
bool SkipsAll(std::span<const UpdatePart> parts);

}  // namespace leeway
