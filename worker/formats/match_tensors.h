// Matches the tensors of a file with those of a model.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/files/safetensors_reader.h"
#include "worker/formats/file_tensors.h"

namespace leeway {

// Returns for each entry of `wanted` the file's tensor. Tensors match by name. If all names of the
// file are those of an nn.Sequential, and differ from the model's, tensors match by order. The file
// may also have tensors that PyTorch stores in addition to weights, but no others. INVALID_ARGUMENT
// lists the tensors that are missing, left over, or of the wrong shape.
absl::StatusOr<std::vector<const StoredTensor*>> MatchTensors(
    const SafetensorsReader& file, const std::vector<FileTensor>& wanted);

}  // namespace leeway
