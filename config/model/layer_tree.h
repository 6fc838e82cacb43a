// A model's tree of layers: the layers within a layer, and the name of each layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <google/protobuf/repeated_ptr_field.h>

#include "leeway/v1/job.pb.h"

namespace leeway {

using LayerList = google::protobuf::RepeatedPtrField<v1::Layer>;

// Layers that follow each other: the layers of the whole model, or of one branch of a layer.
struct Branch {
  // The prefix of the names of the branch's layers, with the dot: "residual_2.shortcut."
  std::string name_prefix;
  // The key of the list in the job: "model.layers.2.residual.shortcut".
  std::string key;
  const LayerList* layers = nullptr;
};

// Returns the layer's type as in YAML, such as conv2d. Returns an empty string if no type is set.
std::string LayerType(const v1::Layer& layer);
// Returns the layer's `name`, or TYPE_INDEX if it has none.
std::string LayerName(const v1::Layer& layer, int index);

// Returns true if this kind of layer has tensors of its own.
bool HasWeights(const v1::Layer& layer);
// Returns true if the layer is made of other layers: sequence, residual, repeat, concat, recompute.
bool HasBranches(const v1::Layer& layer);
// Returns true if all branches of the layer have the layer's input and meet in one output:
// residual, concat.
bool JoinsBranches(const v1::Layer& layer);

// Returns the branches within a layer. A layer that computes has no branches. A repeat has one
// branch for each repetition, and the branches follow each other as in a sequence. All branches of
// a residual or concat get the layer's input. `name` and `key` are the layer's full ones.
std::vector<Branch> BranchesOf(const v1::Layer& layer, const std::string& name,
                               const std::string& key);

// A place in the model that computes: a layer without branches, or the place where the branches of
// a residual or concat meet.
struct PlacedLayer {
  std::string name;
  std::string key;
  const v1::Layer* layer = nullptr;
};
// Returns the model's places, in the order of a forward pass. Call CountLayers first, because a
// model may have at most kLayersMax places.
std::vector<PlacedLayer> FlattenLayers(const v1::Model& model);

constexpr uint64_t kLayersMax = 10'000;
// Returns the number of places that FlattenLayers would return, or kLayersMax + 1 if there are more
// than kLayersMax.
uint64_t CountLayers(const v1::Model& model);

// How deeply layers may be nested. The YAML reader refuses deeper nesting (yaml_tree.h).
constexpr int kLayerDepthMax = 16;

}  // namespace leeway
