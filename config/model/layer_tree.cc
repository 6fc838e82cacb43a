#include "config/model/layer_tree.h"

#include <algorithm>

#include <google/protobuf/descriptor.h>

#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

void Flatten(const Branch& branch, std::vector<PlacedLayer>& out) {
  for (int i = 0; i < branch.layers->size(); ++i) {
    const v1::Layer& layer = (*branch.layers)[i];
    const std::string name = absl::StrCat(branch.name_prefix, LayerName(layer, i));
    const std::string key = absl::StrCat(branch.key, ".", i);
    const std::vector<Branch> branches = BranchesOf(layer, name, key);
    for (const Branch& within : branches) Flatten(within, out);
    if (!HasBranches(layer) || JoinsBranches(layer)) {
      out.push_back({name, key, &layer});
    }
  }
}

uint64_t Count(const LayerList& layers);

uint64_t AtMost(uint64_t count) { return std::min(kLayersMax + 1, count); }

uint64_t CountOne(const v1::Layer& layer) {
  if (!HasBranches(layer)) return 1;
  // All repetitions are alike. Repetitions of an empty list count, too, to limit their number.
  if (layer.has_repeat()) {
    return AtMost(std::max<uint64_t>(1, Count(layer.repeat().layers())) * layer.repeat().times());
  }
  uint64_t count = JoinsBranches(layer) ? 1 : 0;
  for (const Branch& branch : BranchesOf(layer, "", ""))
    count = AtMost(count + Count(*branch.layers));
  return count;
}

uint64_t Count(const LayerList& layers) {
  uint64_t count = 0;
  for (const v1::Layer& layer : layers) count = AtMost(count + CountOne(layer));
  return count;
}

}  // namespace

std::string LayerType(const v1::Layer& layer) {
  const auto* field = v1::Layer::descriptor()->FindFieldByNumber(layer.layer_case());
  return field == nullptr ? "" : std::string(field->name());
}

std::string LayerName(const v1::Layer& layer, int index) {
  if (layer.has_name()) return layer.name();
  const std::string type = LayerType(layer);
  return absl::StrCat(type.empty() ? "layer" : type, "_", index);
}

bool HasWeights(const v1::Layer& layer) {
  switch (layer.layer_case()) {
    case v1::Layer::kDense:
    case v1::Layer::kConv2D:
    case v1::Layer::kBatchNorm:
    case v1::Layer::kLayerNorm:
    case v1::Layer::kGroupNorm:
    case v1::Layer::kEmbedding:
    case v1::Layer::kPositionEmbedding:
    case v1::Layer::kAttention:
    case v1::Layer::kFactorInteraction:
    // A layer of a plugin may have weights.
    case v1::Layer::kCustom:
      return true;
    default:
      return false;
  }
}

bool HasBranches(const v1::Layer& layer) {
  return layer.has_sequence() || layer.has_repeat() || layer.has_recompute() ||
         JoinsBranches(layer);
}

bool JoinsBranches(const v1::Layer& layer) { return layer.has_residual() || layer.has_concat(); }

std::vector<Branch> BranchesOf(const v1::Layer& layer, const std::string& name,
                               const std::string& key) {
  const std::string prefix = absl::StrCat(name, ".");
  switch (layer.layer_case()) {
    case v1::Layer::kSequence:
      return {{prefix, absl::StrCat(key, ".sequence.layers"), &layer.sequence().layers()}};
    case v1::Layer::kRecompute:
      return {{prefix, absl::StrCat(key, ".recompute.layers"), &layer.recompute().layers()}};
    case v1::Layer::kResidual:
      return {{prefix, absl::StrCat(key, ".residual.layers"), &layer.residual().layers()},
              {absl::StrCat(prefix, "shortcut."), absl::StrCat(key, ".residual.shortcut"),
               &layer.residual().shortcut()}};
    case v1::Layer::kRepeat: {
      std::vector<Branch> times;
      for (uint32_t time = 0; time < layer.repeat().times(); ++time) {
        times.push_back({absl::StrCat(prefix, time, "."), absl::StrCat(key, ".repeat.layers"),
                         &layer.repeat().layers()});
      }
      return times;
    }
    case v1::Layer::kConcat: {
      std::vector<Branch> branches;
      for (int i = 0; i < layer.concat().branches_size(); ++i) {
        branches.push_back({absl::StrCat(prefix, i, "."),
                            absl::StrCat(key, ".concat.branches.", i, ".layers"),
                            &layer.concat().branches(i).layers()});
      }
      return branches;
    }
    default:
      return {};
  }
}

std::vector<PlacedLayer> FlattenLayers(const v1::Model& model) {
  std::vector<PlacedLayer> layers;
  Flatten({"", "model.layers", &model.layers()}, layers);
  return layers;
}

uint64_t CountLayers(const v1::Model& model) { return Count(model.layers()); }

}  // namespace leeway
