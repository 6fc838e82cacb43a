// Reads and writes a model's weights as files of other programs.
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

// Reads the flat vector of `model`, which must be built of `config`, from the safetensors file at
// `path`. Its tensors have either Leeway's names and layouts (LAYER/weight) or PyTorch's
// (docs/models.md). The whole file is checked. Errors name the file and the tensor: NOT_FOUND if
// the file does not exist, DATA_LOSS if it is damaged, INVALID_ARGUMENT if it is not of this model,
// or a value is not finite.
absl::StatusOr<FloatBuffer> ReadModelFile(const std::string& path, const v1::Model& config,
                                          const Model& model);

// Reads the initial weights of the job's model: model.initial, below the data folder. Errors have
// that key.
absl::StatusOr<FloatBuffer> ReadInitialWeights(const v1::Model& config, const std::string& data_dir,
                                               const Model& model);

// Writes the weights in PyTorch's form, for load_state_dict(strict=True). Errors are those of
// TorchTensors.
absl::Status WriteTorchFile(const std::string& path, const v1::Model& config, const Model& model,
                            std::span<const float> weights,
                            const std::map<std::string, std::string>& metadata,
                            WriteTo to = WriteTo::kRegularFile);

}  // namespace leeway
