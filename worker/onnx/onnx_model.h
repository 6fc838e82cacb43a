// Converts a trained model to ONNX (onnx.ai), so that other programs can evaluate it.
#pragma once

#include <map>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "onnx/onnx.pb.h"
#include "worker/model/model.h"

namespace leeway {

// Returns the model as it is evaluated: with running statistics and without dropout. The input
// `input` is [N, channels, height, width], [N, features], or [N, positions] of INT64 if the model
// takes tokens. The output `scores` is [N, scores], or [N, positions, scores], before any softmax.
// The opset is 10. `model` must be built of `config`. UNIMPLEMENTED, with the key of the layer, if
// the layer cannot be written as ONNX; RESOURCE_EXHAUSTED if the weights have more than 2 GB, which
// a protobuf message cannot hold.
absl::StatusOr<onnx::ModelProto> MakeOnnxModel(const v1::Model& config, const Model& model,
                                               std::span<const float> weights,
                                               const std::map<std::string, std::string>& metadata);

}  // namespace leeway
