// The order of features. Leeway flattens an image row by row, pixel by pixel, channel by channel.
// PyTorch and ONNX keep all pixels of a channel together. So the weights that read a flattened
// image have another order of rows there.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/shape.h"
#include "worker/formats/axis_order.h"
#include "worker/model/graph.h"

namespace leeway {

// Returns for each value of `graph` the image that its features are of. For an image, or a value
// that was never one, this is its own shape. `graph` must be made of `config`. UNIMPLEMENTED,
// naming the layer, if features of a flattened image are used as channels or mixed with others, so
// that no order of the layer's weights matches PyTorch.
absl::StatusOr<std::vector<ImageShape>> FeatureImages(const v1::Model& config, const Graph& graph);

// The axes of a tensor with an element for each feature.
AxisOrder FeatureAxes(const ImageShape& image);
// The axes of a dense layer's weight, [features x units] -> [units x features].
AxisOrder LinearAxes(const ImageShape& image, uint64_t units);
// The axes of a dense layer's weight that is [features x units] in the file, too
// (KeepsInputsFirst).
AxisOrder LinearAxesInputsFirst(const ImageShape& image, uint64_t units);

}  // namespace leeway
