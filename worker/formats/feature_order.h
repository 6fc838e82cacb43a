// The order of features. Leeway flattens an image row by row, pixel by pixel, channel by channel.
// PyTorch and ONNX keep all pixels of a channel together. So in PyTorch and ONNX, the weights that
// read a flattened image have their rows in another order.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/shape.h"
#include "worker/formats/axis_order.h"
#include "worker/model/graph.h"

namespace leeway {

// Returns, for each value of `graph`, the shape of the image to which its features belong. If the
// value is an image, or was never one, this is its own shape. `graph` must be made from `config`.
// Returns UNIMPLEMENTED, naming the layer, if a layer uses features of a flattened image as
// channels, or mixes them with other features. For such a layer no order of the weights matches
// PyTorch.
absl::StatusOr<std::vector<ImageShape>> FeatureImages(const v1::Model& config, const Graph& graph);

// Returns the axes of a tensor with one element for each feature.
AxisOrder FeatureAxes(const ImageShape& image);
// Returns the axes of a dense layer's weight that is [features x units] in the model and [units x
// features] in the file.
AxisOrder LinearAxes(const ImageShape& image, uint64_t units);
// Returns the axes of a dense layer's weight that is [features x units] in the model and in the
// file (KeepsInputsFirst).
AxisOrder LinearAxesInputsFirst(const ImageShape& image, uint64_t units);

}  // namespace leeway
