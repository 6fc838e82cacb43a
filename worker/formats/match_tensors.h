// Matches the tensors of a file with those of a model.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/files/safetensors_reader.h"
#include "worker/formats/file_tensors.h"

namespace leeway {

// Returns the file's tensor for each entry of `wanted`. Tensors match by name. But if all names in
// the file are those of an nn.Sequential, and differ from the model's names, tensors match by
// order. The only other tensors that the file may have are those that PyTorch stores in addition to
// weights. Returns INVALID_ARGUMENT, listing the tensors that are missing, left over, or of the
// wrong shape.
absl::StatusOr<std::vector<const StoredTensor*>> MatchTensors(
    const SafetensorsReader& file, const std::vector<FileTensor>& wanted);

}  // namespace leeway
