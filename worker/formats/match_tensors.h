// Matches the tensors of a file with those of a model.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/files/safetensors_reader.h"
#include "worker/formats/file_tensors.h"

namespace leeway {

// Returns the file's tensor for each entry of `wanted`. Tensors match by name. If all names in the
// file are those of an nn.Sequential, and differ from the model's names, tensors match by order
// instead. In addition, the file may have only the tensors that PyTorch stores beside weights.
// Returns INVALID_ARGUMENT, listing the tensors that are missing, left over, or of the wrong shape.
absl::StatusOr<std::vector<const StoredTensor*>> MatchTensors(
    const SafetensorsReader& file, const std::vector<FileTensor>& wanted);

}  // namespace leeway
