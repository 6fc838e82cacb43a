// Where each layer's tensors lie in a model's flat vector, and in which panels they travel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/blocks.h"
#include "leeway/v1/coordinator.pb.h"
#include "worker/layers/layer.h"
#include "worker/model/graph.h"

namespace leeway {

// Immutable once made. Nodes are counted as in the graph.
class ModelLayout {
 public:
  // A tensor of a layer, and where it begins in the flat vector.
  struct Placed {
    TensorPlan plan;
    size_t offset = 0;
  };
  // The ranges of the flat vector that hold one panel of a layer's tensors.
  struct Panel {
    // The panel's elements, with the layer's averaged tensors. Empty if the layer has no tensors.
    std::vector<ElementRange> all;
    ElementRange trained;
    // The panel's number among all panels of the model.
    size_t number = 0;
  };

  // Returns INVALID_ARGUMENT if the model has too many elements, or no elements to train.
  static absl::StatusOr<ModelLayout> Make(const Graph& graph);

  const v1::ModelSchema& schema() const { return schema_; }
  uint64_t total() const { return schema_.total(); }
  const std::vector<Placed>& tensors(size_t node) const { return tensors_[node]; }
  // Returns the panels of a node, at least one.
  const std::vector<Panel>& panels(size_t node) const { return panels_[node]; }
  // Returns the ranges of all layers' averaged tensors. Together they are contiguous.
  const std::vector<ElementRange>& averaged() const { return averaged_; }
  size_t panel_count() const { return panels_.back().back().number + 1; }
  // Returns the number of parts of the contribution that are checked for finite values. Each panel
  // is a part. The averaged elements together are the last part.
  size_t finite_cells() const { return panel_count() + (averaged_.empty() ? 0 : 1); }

  // Writes the initial weights [total()]. They are a pure function of the seed.
  void Initialize(uint64_t seed, std::span<float> weights) const;

 private:
  absl::Status PlaceTensors(const Graph& graph);
  void PlacePanels(const Graph& graph);

  v1::ModelSchema schema_;
  std::vector<std::vector<Placed>> tensors_;
  std::vector<std::vector<Panel>> panels_;
  std::vector<ElementRange> averaged_;
};

}  // namespace leeway
