// Writes the trained model for other programs, in the format safetensors
// (github.com/huggingface/safetensors). A file has these parts:
//   8 bytes   length of the header, little-endian
//   header    JSON: {"__metadata__": {...}, NAME: {"dtype": "F32", "shape": [...],
//             "data_offsets": [begin, end]}, ...}, padded with spaces to 8 bytes
//   data      float32, little-endian, row-major
#pragma once

#include <map>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "common/files/files.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Writes each tensor of the schema, atomically. `weights` is the flat vector of schema.total
// elements. Returns INVALID_ARGUMENT unless the tensors fill the vector in order and without gaps,
// and have different names.
absl::Status WriteSafetensors(const std::string& path, const v1::ModelSchema& schema,
                              std::span<const float> weights,
                              const std::map<std::string, std::string>& metadata,
                              WriteTo to = WriteTo::kRegularFile);

}  // namespace leeway
