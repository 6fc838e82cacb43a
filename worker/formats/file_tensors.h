// How a file has the tensors of a model.
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
  // The layer's whole name, and the tensor's own, such as weight.
  std::string layer;
  std::string tensor;
  // In the file: the first is the one that is written.
  std::vector<std::string> names;
  std::vector<uint64_t> shape;
  // Where it begins in the model's flat vector, and how its axes lie there.
  uint64_t offset = 0;
  AxisOrder axes;
  // Of the last layer: which of the file's axes has one element for each score.
  std::optional<size_t> scores_axis = std::nullopt;
};

// As Leeway writes them: LAYER/weight, in the order and layout of the flat vector.
std::vector<FileTensor> LeewayTensors(const Model& model);

// As PyTorch has those of the same model, in the order of the forward pass: convolutions [filters,
// channels, kernel, kernel], dense layers [units, features] (those of GPT-2 [features, units]) with
// the features of an image in the order of its channels. `config` is what `model` was built of.
// UNIMPLEMENTED where PyTorch has no such order; INVALID_ARGUMENT if two tensors would have one
// name.
absl::StatusOr<std::vector<FileTensor>> TorchTensors(const v1::Model& config, const Model& model);

}  // namespace leeway
