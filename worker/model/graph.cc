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
#include "worker/layers/limits.h"
#include "worker/layers/registry.h"

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

// Names become parts of tensor names in checkpoints and exports.
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

class Builder {
 public:
  explicit Builder(const ImageShape& input) { graph_.values.push_back({input, 0, false}); }

  // Appends the layers of a branch; the value that they make of `value`.
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
    if (!layer.has_residual() && !layer.has_concat()) {
      for (const Branch& branch : branches) {
        ASSIGN_OR_RETURN(value, Append(branch, value));
      }
      return value;
    }
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
    LayerOr made = MakeLayer(layer, graph_.values[value].shape);
    if (!made.ok()) {
      const std::string type = LayerType(layer);
      return AtKey(type.empty() ? made.status() : Annotate(made.status(), Described(type, name)),
                   key);
    }
    const ImageShape shape = (*made)->output();
    RETURN_IF_ERROR(
        AtKey(Annotate(CheckShape(shape, "an output"), Described(LayerType(layer), name)), key));
    return Push({.layer = *std::move(made), .name = name, .key = key, .inputs = {value}}, shape);
  }

  absl::StatusOr<size_t> Push(Node node, const ImageShape& shape) {
    const auto [at, fresh] = taken_.emplace(node.name, node.key);
    if (!fresh) {
      return AtKey(absl::InvalidArgumentError(
                       absl::StrCat("the name '", node.name, "' is already that of ", at->second)),
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
      made.trained = made.trained || std::any_of(tensors.begin(), tensors.end(),
                                                 [](const TensorPlan& t) { return t.trained; });
    }
    graph_.nodes.push_back(std::move(node));
    graph_.values.push_back(made);
    return graph_.values.size() - 1;
  }

  absl::StatusOr<ImageShape> SumShape(const std::vector<size_t>& values) const {
    const ImageShape& sum = graph_.values[values[0]].shape;
    const ImageShape& shortcut = graph_.values[values[1]].shape;
    if (sum == shortcut) return sum;
    return absl::InvalidArgumentError(absl::StrCat(
        "the layers give ", TextOf(sum), " and the shortcut gives ", TextOf(shortcut),
        ", which cannot be added: give `shortcut` layers that end in the same shape, such as a "
        "conv2d with kernel 1"));
  }

  absl::StatusOr<ImageShape> ConcatShape(const std::vector<size_t>& values) const {
    ImageShape all = graph_.values[values[0]].shape;
    uint64_t channels = all.channels;
    for (size_t i = 1; i < values.size(); ++i) {
      const ImageShape& more = graph_.values[values[i]].shape;
      if (more.height != all.height || more.width != all.width) {
        return absl::InvalidArgumentError(absl::StrCat("branch 0 gives ", TextOf(all),
                                                       " and branch ", i, " gives ", TextOf(more),
                                                       ": height and width must be the same"));
      }
      channels += more.channels;
    }
    if (channels > kMaxExampleElements) {
      return absl::InvalidArgumentError(absl::StrCat("the branches have ", channels, " channels"));
    }
    all.channels = static_cast<uint32_t>(channels);
    RETURN_IF_ERROR(CheckShape(all, "an output"));
    return all;
  }

  Graph graph_;
  std::map<std::string, std::string> taken_;
};

}  // namespace

Placement Node::placement() const {
  if (layer != nullptr) return layer->placement();
  return kind == Kind::kAdd ? Placement::kInPlace : Placement::kOwn;
}

absl::StatusOr<Graph> MakeGraph(const v1::Model& config, const ImageShape& input) {
  RETURN_IF_ERROR(AtKey(CheckShape(input, "the data's example"), "model"));
  if (config.layers().empty()) {
    return AtKey(absl::InvalidArgumentError("there are none"), "model.layers");
  }
  Builder builder(input);
  ASSIGN_OR_RETURN(const size_t scores, builder.Append({"", "model.layers", &config.layers()}, 0));
  Graph graph = builder.Take();
  ++graph.values[scores].readers;
  return graph;
}

}  // namespace leeway
