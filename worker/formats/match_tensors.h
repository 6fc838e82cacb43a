// Which tensor of a file is which of the model.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/files/safetensors_reader.h"
#include "worker/formats/file_tensors.h"

namespace leeway {

// By place in `wanted`. By name; where all names of the file are those of an nn.Sequential, and
// others than the model's, by order. What PyTorch keeps besides weights may be left over, nothing
// else. INVALID_ARGUMENT lists what is missing, what is left over, and what has another shape.
absl::StatusOr<std::vector<const StoredTensor*>> MatchTensors(
    const SafetensorsReader& file, const std::vector<FileTensor>& wanted);

}  // namespace leeway
