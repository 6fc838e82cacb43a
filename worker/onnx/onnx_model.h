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

// Returns the model as it is in evaluation: with running statistics and without dropout. The input
// `input` is [N, channels, height, width], [N, features], or [N, positions] of INT64 if the model
// reads tokens. The output `scores` is [N, scores], or [N, positions, scores], before any softmax.
// The opset is 10. `model` must be built from `config`. Returns UNIMPLEMENTED at the key of the
// layer if a layer cannot be written as ONNX. Returns RESOURCE_EXHAUSTED if the weights have more
// than 2 GB, which a protobuf message cannot hold.
absl::StatusOr<onnx::ModelProto> MakeOnnxModel(const v1::Model& config, const Model& model,
                                               std::span<const float> weights,
                                               const std::map<std::string, std::string>& metadata);

}  // namespace leeway
