// A model's weights from and to files of other programs.
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

// The flat vector of `model`, which was built of `config`, from the safetensors file at `path`. Its
// tensors are called and laid out either as Leeway writes them (LAYER/weight) or as PyTorch does
// (docs/models.md). The whole file is checked: errors name file and tensor. NOT_FOUND if there is
// no file, DATA_LOSS if it is damaged, INVALID_ARGUMENT if it is not of this model, or a value is
// not finite.
absl::StatusOr<FloatBuffer> ReadModelFile(const std::string& path, const v1::Model& config,
                                          const Model& model);

// What the job's model starts from: model.initial, below the data folder. Errors have that key.
absl::StatusOr<FloatBuffer> ReadInitialWeights(const v1::Model& config, const std::string& data_dir,
                                               const Model& model);

// Writes the weights as PyTorch has them, for load_state_dict(strict=True). Errors as
// TorchTensors'.
absl::Status WriteTorchFile(const std::string& path, const v1::Model& config, const Model& model,
                            std::span<const float> weights,
                            const std::map<std::string, std::string>& metadata,
                            WriteTo to = WriteTo::kRegularFile);

}  // namespace leeway
