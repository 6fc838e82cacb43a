// Reads and writes a model's weights in the file formats of other programs.
#pragma once

#include <map>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/buffer.h"
#include "common/files/files.h"
#include "leeway/v1/job.pb.h"
#include "worker/model/model.h"

namespace leeway {

// Reads the flat vector of `model`, which must be built from `config`, from the safetensors file at
// `path`. The file's tensors have either Leeway's names and layouts (LAYER/weight) or PyTorch's
// (docs/models.md). The whole file is checked. Errors name the file and the tensor. Returns
// NOT_FOUND if the file does not exist, DATA_LOSS if it is damaged, and INVALID_ARGUMENT if its
// tensors are not those of this model, or a value is not finite.
absl::StatusOr<FloatBuffer> ReadModelFile(const std::string& path, const v1::Model& config,
                                          const Model& model);

// Reads the initial weights of the job's model from the file model.initial, which is relative to
// the data folder. Errors are at that key.
absl::StatusOr<FloatBuffer> ReadInitialWeights(const v1::Model& config, const std::string& data_dir,
                                               const Model& model);

// Writes the weights in PyTorch's form, for load_state_dict(strict=True). Returns the errors of
// TorchTensors.
absl::Status WriteTorchFile(const std::string& path, const v1::Model& config, const Model& model,
                            std::span<const float> weights,
                            const std::map<std::string, std::string>& metadata,
                            WriteTo to = WriteTo::kRegularFile);

}  // namespace leeway
