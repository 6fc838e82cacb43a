// Describes how a file stores the tensors of a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/formats/axis_order.h"
#include "worker/model/model.h"

namespace leeway {

struct FileTensor {
  // The layer's full name, and the tensor's own, such as weight.
  std::string layer;
  std::string tensor;
  // The names in the file. Leeway writes the first one, and accepts any of them when it reads.
  std::vector<std::string> names;
  std::vector<uint64_t> shape;
  // The tensor's offset in the model's flat vector, and its axes there.
  uint64_t offset = 0;
  AxisOrder axes;
  // For the last layer, the axis in the file that has one element for each score.
  std::optional<size_t> scores_axis = std::nullopt;
};

// The tensors as Leeway writes them: named LAYER/weight, in the order and layout of the flat
// vector.
std::vector<FileTensor> LeewayTensors(const Model& model);

// The tensors of the same model as PyTorch stores them, in the order of the forward pass.
// Convolutions are [filters, channels, kernel, kernel]. Dense layers are [units, features], but
// GPT-2's are [features, units]. The features of an image are in the order of its channels. `model`
// must be built of `config`. UNIMPLEMENTED if PyTorch has no such order; INVALID_ARGUMENT if two
// tensors would have the same name.
absl::StatusOr<std::vector<FileTensor>> TorchTensors(const v1::Model& config, const Model& model);

}  // namespace leeway
