// A model's tree of layers as a graph in the order of its forward pass: nodes, each of which reads
// values and makes one.
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

// What a node reads or makes, of one example. Value 0 is the example itself, value i + 1 the output
// of node i.
struct Value {
  ImageShape shape;
  // Nodes that read it; the scores have one more reader, the loss.
  size_t readers = 0;
  // It depends on weights that are trained, and so needs a gradient.
  bool trained = false;
};

struct Node {
  enum class Kind {
    // `layer`, of its one input.
    kLayer,
    // The sum of its two inputs, of which the second is the shortcut.
    kAdd,
    // Its inputs, channels behind channels.
    kConcat,
  };
  Kind kind = Kind::kLayer;
  // Of kLayer only.
  std::unique_ptr<Layer> layer = nullptr;
  // Whole, as in the schema's names: residual_2.conv2d_0.
  std::string name;
  // Of the layer in the job: model.layers.2.residual.layers.0.
  std::string key;
  // Values.
  std::vector<size_t> inputs;
  // The node whose tensors the layer takes, having none itself.
  std::optional<size_t> tied_to = std::nullopt;
  // In the backward pass, others have left their parts of the gradients of its tensors before it.
  bool accumulates = false;
  // Of Graph::segments, the one that it is in.
  std::optional<size_t> segment = std::nullopt;

  Placement placement() const;
  bool is_view() const { return placement() == Placement::kView; }
};

// Nodes whose values are not kept for the backward pass, but computed again there. Only the last
// node's output is read outside.
struct Segment {
  size_t begin = 0;
  size_t end = 0;

  // Whether a node in it that reads `value` reads what was made before.
  bool enters(size_t value) const { return value <= begin; }
};

struct Graph {
  std::vector<Node> nodes;
  // One more than there are nodes.
  std::vector<Value> values;
  // In the order of the forward pass.
  std::vector<Segment> segments;

  const Value& input(size_t node, size_t which = 0) const {
    return values[nodes[node].inputs[which]];
  }
  const Value& output(size_t node) const { return values[node + 1]; }
  const ImageShape& scores() const { return values.back().shape; }
  // Places of an example that have scores of their own.
  size_t positions() const { return size_t{scores().height} * scores().width; }
};

// For examples of shape `input`. INVALID_ARGUMENT with the key of the layer that does not fit.
absl::StatusOr<Graph> MakeGraph(const v1::Model& config, const ImageShape& input,
                                const Plugins& plugins = {});

}  // namespace leeway
