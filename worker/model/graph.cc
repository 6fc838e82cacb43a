#include "worker/model/graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/job_key.h"
#include "common/status.h"
#include "config/model/layer_tree.h"
#include "worker/layers/custom.h"
#include "worker/layers/limits.h"
#include "worker/layers/registry.h"
#include "worker/layers/tied_dense.h"

namespace leeway {
namespace {

std::string TextOf(const ImageShape& shape) {
  return absl::StrCat(shape.height, " x ", shape.width, " x ", shape.channels);
}

absl::Status CheckShape(const ImageShape& shape, absl::string_view what) {
  const uint64_t pixels = uint64_t{shape.height} * shape.width;
  if (pixels == 0 || shape.channels == 0) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is empty"));
  }
  if (pixels > kMaxExampleElements / shape.channels) {
    return absl::InvalidArgumentError(absl::StrCat(what, " of ", TextOf(shape),
                                                   " is more than the limit of ",
                                                   kMaxExampleElements, " values an example"));
  }
  return absl::OkStatus();
}

// Checks a name, which becomes part of tensor names in checkpoints and exports.
absl::Status CheckName(absl::string_view name) {
  const bool good = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  });
  if (good && !name.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("a name has letters, digits, '-', '_' and '.' only");
}

std::string Described(const std::string& type, const std::string& name) {
  return absl::StrCat(type, " '", name, "'");
}

// Adds the layer's name to its error, and keeps the key within the layer.
absl::Status Named(const absl::Status& status, const std::string& layer) {
  const std::string key = KeyOf(status);
  if (key.empty()) return Annotate(status, layer);
  return AtKey(Annotate(absl::Status(status.code(), MessageWithoutKey(status)), layer), key);
}

class Builder {
 public:
  Builder(const ImageShape& input, const Plugins& plugins) : plugins_(plugins) {
    graph_.values.push_back({input, 0, false});
  }

  // Appends the layers of a branch that begins with `value`. Returns the value that they compute.
  absl::StatusOr<size_t> Append(const Branch& branch, size_t value) {
    for (int i = 0; i < branch.layers->size(); ++i) {
      const v1::Layer& layer = (*branch.layers)[i];
      const std::string own_name = LayerName(layer, i);
      const std::string key = absl::StrCat(branch.key, ".", i);
      const std::string name = absl::StrCat(branch.name_prefix, own_name);
      RETURN_IF_ERROR(AtKey(Annotate(CheckName(own_name), Described(LayerType(layer), name)), key));
      ASSIGN_OR_RETURN(value, AppendLayer(layer, name, key, value));
    }
    return value;
  }

  Graph Take() { return std::move(graph_); }

 private:
  absl::StatusOr<size_t> AppendLayer(const v1::Layer& layer, const std::string& name,
                                     const std::string& key, size_t value) {
    if (!HasBranches(layer)) return AppendComputing(layer, name, key, value);
    const std::vector<Branch> branches = BranchesOf(layer, name, key);
    if (branches.empty()) {
      return AtKey(absl::InvalidArgumentError(
                       absl::StrCat(Described(LayerType(layer), name), ": has no layers")),
                   key);
    }
    if (layer.has_recompute()) return AppendSegment(branches.front(), name, key, value);
    if (JoinsBranches(layer)) return AppendJoin(layer, name, key, branches, value);
    for (const Branch& branch : branches) {
      ASSIGN_OR_RETURN(value, Append(branch, value));
    }
    return value;
  }

  absl::StatusOr<size_t> AppendSegment(const Branch& branch, const std::string& name,
                                       const std::string& key, size_t value) {
    if (segment_.has_value()) {
      return AtKey(absl::InvalidArgumentError(
                       absl::StrCat(Described("recompute", name),
                                    ": is inside another recompute, which already computes all of "
                                    "its layers again: remove one of the two")),
                   key);
    }
    const size_t begin = graph_.nodes.size();
    segment_ = graph_.segments.size();
    ASSIGN_OR_RETURN(value, Append(branch, value));
    segment_.reset();
    graph_.segments.push_back({begin, graph_.nodes.size()});
    return value;
  }

  absl::StatusOr<size_t> AppendJoin(const v1::Layer& layer, const std::string& name,
                                    const std::string& key, const std::vector<Branch>& branches,
                                    size_t value) {
    std::vector<size_t> outputs;
    for (const Branch& branch : branches) {
      ASSIGN_OR_RETURN(outputs.emplace_back(), Append(branch, value));
    }
    const Node::Kind kind = layer.has_residual() ? Node::Kind::kAdd : Node::Kind::kConcat;
    const absl::StatusOr<ImageShape> shape =
        kind == Node::Kind::kAdd ? SumShape(outputs) : ConcatShape(outputs);
    if (!shape.ok()) return AtKey(shape.status(), key);
    return Push({.kind = kind, .layer = nullptr, .name = name, .key = key, .inputs = outputs},
                *shape);
  }

  absl::StatusOr<size_t> AppendComputing(const v1::Layer& layer, const std::string& name,
                                         const std::string& key, size_t value) {
    Node node{.name = name, .key = key, .inputs = {value}};
    const absl::Status made = Make(layer, value, node);
    if (!made.ok()) {
      const std::string type = LayerType(layer);
      return AtKey(type.empty() ? made : Named(made, Described(type, name)), key);
    }
    const ImageShape shape = node.layer->output();
    return Push(std::move(node), shape);
  }

  absl::Status Make(const v1::Layer& layer, size_t value, Node& node) const {
    const ImageShape& input = graph_.values[value].shape;
    if (layer.has_tied_dense()) {
      ASSIGN_OR_RETURN(node.tied_to, FindTied(layer.tied_dense().embedding(), node.name));
      ASSIGN_OR_RETURN(node.layer, MakeTiedDense(*graph_.nodes[*node.tied_to].layer, input));
    } else if (layer.has_custom()) {
      LayerOr made = MakeCustomLayer(layer.custom(), input, plugins_);
      if (!made.ok()) return AtKey(made.status(), "custom");
      node.layer = *std::move(made);
    } else {
      ASSIGN_OR_RETURN(node.layer, MakeLayer(layer, input));
    }
    if (node.layer->tokens() > 0 && value != 0) {
      return absl::InvalidArgumentError(
          "reads the data's tokens, so it must be the model's first layer");
    }
    return CheckShape(node.layer->output(), "an output");
  }

  // Finds the layer called `wanted`. Searches the list that contains layer `name`, and then the
  // lists around that list.
  absl::StatusOr<size_t> FindTied(const std::string& wanted, const std::string& name) const {
    for (std::string prefix = name; !prefix.empty();) {
      const size_t dot = prefix.rfind('.');
      prefix = dot == std::string::npos ? "" : prefix.substr(0, dot);
      const std::string whole = prefix.empty() ? wanted : absl::StrCat(prefix, ".", wanted);
      for (size_t i = 0; i < graph_.nodes.size(); ++i) {
        const Node& node = graph_.nodes[i];
        if (node.name == whole && node.layer != nullptr && node.layer->can_be_tied()) return i;
      }
    }
    return absl::InvalidArgumentError(
        absl::StrCat("embedding: no earlier embedding has the name '", wanted, "'"));
  }

  absl::StatusOr<size_t> Push(Node node, const ImageShape& shape) {
    const auto [at, fresh] = taken_.emplace(node.name, node.key);
    if (!fresh) {
      return AtKey(absl::InvalidArgumentError(
                       absl::StrCat("the name '", node.name, "' is already used by ", at->second)),
                   node.key);
    }
    if (graph_.nodes.size() >= kLayersMax) {
      return AtKey(absl::InvalidArgumentError(
                       absl::StrCat("the model has more than ", kLayersMax, " layers")),
                   node.key);
    }
    Value made{.shape = shape};
    for (const size_t input : node.inputs) {
      ++graph_.values[input].readers;
      made.trained = made.trained || graph_.values[input].trained;
    }
    if (node.layer != nullptr) {
      const std::vector<TensorPlan> tensors = node.layer->tensors();
      made.trained = made.trained || node.tied_to.has_value() ||
                     std::any_of(tensors.begin(), tensors.end(),
                                 [](const TensorPlan& t) { return t.trained; });
    }
    node.segment = segment_;
    graph_.nodes.push_back(std::move(node));
    graph_.values.push_back(made);
    return graph_.values.size() - 1;
  }

  absl::StatusOr<ImageShape> SumShape(const std::vector<size_t>& values) const {
    const ImageShape& sum = graph_.values[values[0]].shape;
    const ImageShape& shortcut = graph_.values[values[1]].shape;
    if (sum == shortcut) return sum;
    return absl::InvalidArgumentError(absl::StrCat(
        "the layers compute ", TextOf(sum), " and the shortcut computes ", TextOf(shortcut),
        ", which cannot be added: give `shortcut` layers that end in the same shape, such as a "
        "conv2d with kernel 1"));
  }

  absl::StatusOr<ImageShape> ConcatShape(const std::vector<size_t>& values) const {
    ImageShape all = graph_.values[values[0]].shape;
    uint64_t channels = all.channels;
    for (size_t i = 1; i < values.size(); ++i) {
      const ImageShape& more = graph_.values[values[i]].shape;
      if (more.height != all.height || more.width != all.width) {
        return absl::InvalidArgumentError(
            absl::StrCat("branch 0 computes ", TextOf(all), " and branch ", i, " computes ",
                         TextOf(more), ": height and width must be the same"));
      }
      channels += more.channels;
    }
    if (channels > kMaxExampleElements) {
      return absl::InvalidArgumentError(absl::StrCat("the branches have ", channels,
                                                     " channels together; at most ",
                                                     kMaxExampleElements, " are allowed"));
    }
    all.channels = static_cast<uint32_t>(channels);
    RETURN_IF_ERROR(CheckShape(all, "an output"));
    return all;
  }

  const Plugins plugins_;
  Graph graph_;
  // The segment to which nodes are being appended.
  std::optional<size_t> segment_;
  std::map<std::string, std::string> taken_;
};

}  // namespace

Placement Node::placement() const {
  if (layer != nullptr) return layer->placement();
  return kind == Kind::kAdd ? Placement::kInPlace : Placement::kOwn;
}

namespace {

// Marks the nodes that add to gradients. Goes from the last node to the first, as the backward pass
// does.
void FindAccumulation(Graph& graph) {
  std::vector<bool> written(graph.nodes.size());
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    Node& node = graph.nodes[i];
    const size_t owner = node.tied_to.value_or(i);
    node.accumulates = written[owner];
    written[owner] = true;
  }
}

}  // namespace

absl::StatusOr<Graph> MakeGraph(const v1::Model& config, const ImageShape& input,
                                const Plugins& plugins) {
  RETURN_IF_ERROR(AtKey(CheckShape(input, "the data's example"), "model"));
  if (config.layers().empty()) {
    return AtKey(absl::InvalidArgumentError("the list of layers is empty"), "model.layers");
  }
  Builder builder(input, plugins);
  ASSIGN_OR_RETURN(const size_t scores, builder.Append({"", "model.layers", &config.layers()}, 0));
  Graph graph = builder.Take();
  ++graph.values[scores].readers;
  FindAccumulation(graph);
  return graph;
}

}  // namespace leeway
