// A model's tree of layers as a graph in the order of its forward pass. Each node reads values and
// computes one value.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plugins/plugins.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/shape.h"
#include "worker/layers/layer.h"

namespace leeway {

// What a node reads or computes, for one example. Value 0 is the example itself, and value i + 1 is
// the output of node i.
struct Value {
  ImageShape shape;
  // The number of nodes that read the value. For the scores it also counts the loss.
  size_t readers = 0;
  // True if the value depends on trained weights, so that it needs a gradient.
  bool trained = false;
};

struct Node {
  enum class Kind {
    // Applies `layer` to its one input.
    kLayer,
    // Adds its two inputs. The second input is the shortcut.
    kAdd,
    // Concatenates its inputs along the channels.
    kConcat,
  };
  Kind kind = Kind::kLayer;
  // The layer that the node applies. Null unless the kind is kLayer.
  std::unique_ptr<Layer> layer = nullptr;
  // The full name, as in the schema: residual_2.conv2d_0.
  std::string name;
  // The key of the layer in the job: model.layers.2.residual.layers.0.
  std::string key;
  // The indices of the values that the node reads.
  std::vector<size_t> inputs;
  // The node whose tensors this layer uses, if this layer has no tensors of its own.
  std::optional<size_t> tied_to = std::nullopt;
  // True if other nodes have already added to the gradients of the node's tensors when the backward
  // pass reaches this node.
  bool accumulates = false;
  // The index of the node's segment in Graph::segments.
  std::optional<size_t> segment = std::nullopt;

  Placement placement() const;
  bool is_view() const { return placement() == Placement::kView; }
};

// A range of nodes whose values are not kept: the backward pass computes them again. Nodes outside
// the segment read only the last node's output.
struct Segment {
  size_t begin = 0;
  size_t end = 0;

  // Returns true if `value`, which a node of the segment reads, was computed before the segment.
  bool enters(size_t value) const { return value <= begin; }
};

struct Graph {
  std::vector<Node> nodes;
  // The values that nodes read and compute. There is one more value than there are nodes.
  std::vector<Value> values;
  // The segments in the order of the forward pass.
  std::vector<Segment> segments;

  const Value& input(size_t node, size_t which = 0) const {
    return values[nodes[node].inputs[which]];
  }
  const Value& output(size_t node) const { return values[node + 1]; }
  const ImageShape& scores() const { return values.back().shape; }
  // Returns the number of positions in an example that have scores of their own.
  size_t positions() const { return size_t{scores().height} * scores().width; }
};

// Builds the graph for examples of shape `input`. Returns INVALID_ARGUMENT at the key of the layer
// that does not fit.
absl::StatusOr<Graph> MakeGraph(const v1::Model& config, const ImageShape& input,
                                const Plugins& plugins = {});

}  // namespace leeway
