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
  // The layer's full name, and the tensor's own name, such as "weight".
  std::string layer;
  std::string tensor;
  // The names that the tensor may have in the file. Leeway writes the first name, and accepts
  // any of them when it reads.
  std::vector<std::string> names;
  std::vector<uint64_t> shape;
  // The tensor's offset in the model's flat vector, and its axes in model and file.
  uint64_t offset = 0;
  AxisOrder axes;
  // For the last layer: the axis in the file that has one element for each score.
  std::optional<size_t> scores_axis = std::nullopt;
};

// Returns the tensors in the form in which Leeway writes them: named LAYER/weight, in the order and
// layout of the flat vector.
std::vector<FileTensor> LeewayTensors(const Model& model);

// Returns the tensors of the same model in the form in which PyTorch stores them, in the order of
// the forward pass. Convolutions are [filters, channels, kernel, kernel]. Dense layers are [units,
// features], except GPT-2's, which are [features, units]. The features of an image are ordered
// channel by channel. `model` must be built from `config`. Returns UNIMPLEMENTED if PyTorch has no
// such order, and INVALID_ARGUMENT if two tensors would have the same name.
absl::StatusOr<std::vector<FileTensor>> TorchTensors(const v1::Model& config, const Model& model);

}  // namespace leeway
