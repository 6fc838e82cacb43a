// The order of features. Leeway flattens an image row by row, pixel by pixel, channel by channel;
// PyTorch and ONNX have all pixels of a channel together. So the weights that read a flattened
// image have their rows in another order there.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/shape.h"
#include "worker/formats/axis_order.h"
#include "worker/model/graph.h"

namespace leeway {

// By value of `graph`, which was made of `config`: the image that its features are of; its own
// shape where it is one itself or was never one. UNIMPLEMENTED, naming the layer, where features of
// a flattened image are taken for channels or mixed with others, so that no order of a layer's
// weights is that of PyTorch.
absl::StatusOr<std::vector<ImageShape>> FeatureImages(const v1::Model& config, const Graph& graph);

// Of a tensor with an element for each feature.
AxisOrder FeatureAxes(const ImageShape& image);
// Of a dense layer's weight, [features x units] -> [units x features].
AxisOrder LinearAxes(const ImageShape& image, uint64_t units);
// Of one whose weight is [features x units] in the file, too (KeepsInputsFirst).
AxisOrder LinearAxesInputsFirst(const ImageShape& image, uint64_t units);

}  // namespace leeway
