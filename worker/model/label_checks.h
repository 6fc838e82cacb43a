// Checks what losses require of scores and labels.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "worker/data/shape.h"
#include "worker/model/loss.h"

namespace leeway {

// Checks of a loss, which messages call `loss` (such as "loss squared"). CheckFlat requires one
// label for each example and one row of scores. CheckOneScore requires one score for each example.
// CheckPositions requires scores for each of an example's labels.
absl::Status CheckFlat(const ImageShape& output, size_t labels, absl::string_view loss);
absl::Status CheckOneScore(const ImageShape& output, size_t labels, absl::string_view loss);
absl::Status CheckPositions(const ImageShape& output, const LabelKind& labels,
                            absl::string_view loss);

// Returns INVALID_ARGUMENT: "label 2.5 of example 3 of the batch is not `wanted`".
absl::Status BadLabel(float label, size_t index, absl::string_view wanted);
// CheckClasses requires that all labels are classes from 0 to units - 1. CheckNumbers requires
// finite numbers.
absl::Status CheckClasses(std::span<const float> labels, uint32_t units);
absl::Status CheckNumbers(std::span<const float> labels);

}  // namespace leeway
