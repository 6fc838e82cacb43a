// A trained model as ONNX (onnx.ai): what other programs evaluate it with.
#pragma once

#include <map>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "onnx/onnx.pb.h"
#include "worker/model/model.h"

namespace leeway {

// As the model is evaluated: running statistics, no dropout. The input `input` is [N, channels,
// height, width], [N, features], or [N, positions] of INT64 where the model takes tokens. The
// output `scores` is [N, scores], or [N, positions, scores], before any softmax. Opset 10.
// `config` is what `model` was built of. UNIMPLEMENTED, with the key of the layer, if ONNX has no
// such layer; RESOURCE_EXHAUSTED for weights of more than 2 GB, which a protobuf message cannot
// hold.
absl::StatusOr<onnx::ModelProto> MakeOnnxModel(const v1::Model& config, const Model& model,
                                               std::span<const float> weights,
                                               const std::map<std::string, std::string>& metadata);

}  // namespace leeway
