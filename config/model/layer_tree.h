// A model's tree of layers: what is within a layer, and what each layer is called.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <google/protobuf/repeated_ptr_field.h>

#include "leeway/v1/job.pb.h"

namespace leeway {

using LayerList = google::protobuf::RepeatedPtrField<v1::Layer>;

// Layers that follow each other, all of them, or one branch of a residual or concat layer.
struct Branch {
  // Of the layers in it, with the dot: "residual_2.shortcut."
  std::string name_prefix;
  // Of the list in the job: "model.layers.2.residual.shortcut".
  std::string key;
  const LayerList* layers = nullptr;
};

// Its type as the YAML says it, such as conv2d; empty if none is set.
std::string LayerType(const v1::Layer& layer);
// `name`, or TYPE_INDEX.
std::string LayerName(const v1::Layer& layer, int index);

// Whether the kind has tensors of its own.
bool HasWeights(const v1::Layer& layer);
// Whether it is made of others: sequence, residual, repeat, concat, recompute.
bool HasBranches(const v1::Layer& layer);
// Whether its branches all have its own input, and meet in one output: residual, concat.
bool JoinsBranches(const v1::Layer& layer);

// The branches within a layer; none in a layer that computes. A repeat has one for each time, which
// follow each other as those of a sequence do; the branches of a residual and of a concat all have
// the layer's own input. `name` and `key` are the layer's whole ones.
std::vector<Branch> BranchesOf(const v1::Layer& layer, const std::string& name,
                               const std::string& key);

// What computes: the layers without branches, and the places where branches meet (residual,
// concat). In the order of a forward pass.
struct PlacedLayer {
  std::string name;
  std::string key;
  const v1::Layer* layer = nullptr;
};
// Of at most kLayersMax of them: CountLayers first.
std::vector<PlacedLayer> FlattenLayers(const v1::Model& model);

constexpr uint64_t kLayersMax = 10'000;
// How many FlattenLayers would give; kLayersMax + 1 for any more.
uint64_t CountLayers(const v1::Model& model);

// How many layers may be within each other, so that the resolved job can be written and read.
constexpr int kLayerDepthMax = 16;

}  // namespace leeway
