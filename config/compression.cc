#include "config/compression.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/suggestion.h"
#include "config/external.h"
#include "config/model/layer_tree.h"

namespace leeway {
namespace {

using Faults = std::vector<Fault>;

void CheckContributions(const v1::TrainingJob& job, const v1::Codec& codec, const std::string& path,
                        Faults& faults) {
  if (!job.exchange().has_elastic() || codec.has_none()) return;
  faults.push_back({absl::StrCat(path, ".type"),
                    "only none goes with an elastic exchange, because it sends the workers' "
                    "weights themselves and what a codec loses would stay lost"});
}

void CheckWeights(const v1::TrainingJob& job, const v1::Codec& codec, const std::string& path,
                  Faults& faults) {
  if (!codec.has_top_k() && !codec.has_sign()) return;
  const std::string type_path = absl::StrCat(path, ".type");
  if (job.exchange().has_elastic()) {
    faults.push_back({type_path,
                      "top_k and sign send changes of weights, but in an elastic exchange the "
                      "servers answer the centre itself: use none, bf16, fp16 or int8"});
  } else if (job.consistency().mode() != v1::CONSISTENCY_MODE_SYNC) {
    faults.push_back(
        {type_path,
         "top_k and sign send the changes from version to version, and only in consistency.mode "
         "sync do all workers read every version: use none, bf16, fp16 or int8"});
  }
}

// Returns why the layer `name` does not exist or sends no values. Returns an empty string if it
// sends values.
std::string WhyNotNamed(const std::vector<PlacedLayer>& layers, const std::string& name) {
  std::vector<std::string> names;
  std::string within;
  bool computes = false;
  for (const PlacedLayer& placed : layers) {
    computes = computes || (placed.name == name && !HasBranches(*placed.layer));
    if (!HasWeights(*placed.layer)) continue;
    if (placed.name == name) return "";
    if (within.empty() && absl::StartsWith(placed.name, absl::StrCat(name, "."))) {
      within = placed.name;
    }
    names.push_back(placed.name);
  }
  if (!within.empty()) {
    return absl::StrCat("layer '", name, "' contains other layers: name those, such as ", within);
  }
  if (computes) return absl::StrCat("layer '", name, "' has no weights");
  return absl::StrCat("the model has no layer '", name, "'", Suggestion(name, names));
}

void CheckNames(const v1::TrainingJob& job, Faults& faults) {
  // The tensors of an external model are not known yet.
  if (IsExternal(job)) return;
  if (CountLayers(job.model()) > kLayersMax) return;  // Another check reports this.
  const std::vector<PlacedLayer> layers = FlattenLayers(job.model());
  std::map<std::string, int> seen;
  for (int i = 0; i < job.compression().layers_size(); ++i) {
    const v1::LayerCompression& choice = job.compression().layers(i);
    for (int k = 0; k < choice.names_size(); ++k) {
      const std::string path = absl::StrCat("compression.layers.", i, ".names.", k);
      const std::string& name = choice.names(k);
      const auto [first, is_new] = seen.insert({name, i});
      if (std::string why = WhyNotNamed(layers, name); !why.empty()) {
        faults.push_back({path, std::move(why)});
      } else if (!is_new) {
        faults.push_back({path, absl::StrCat("layer '", name, "' is already named in ",
                                             "compression.layers.", first->second)});
      }
    }
  }
}

}  // namespace

void CheckCompression(const v1::TrainingJob& job, Faults& faults) {
  if (!job.has_compression()) return;
  const v1::Compression& compression = job.compression();
  CheckContributions(job, compression.contributions(), "compression.contributions", faults);
  CheckWeights(job, compression.weights(), "compression.weights", faults);
  CheckNames(job, faults);
  for (int i = 0; i < compression.layers_size(); ++i) {
    const v1::LayerCompression& choice = compression.layers(i);
    const std::string path = absl::StrCat("compression.layers.", i);
    if (choice.has_contributions()) {
      CheckContributions(job, choice.contributions(), absl::StrCat(path, ".contributions"), faults);
    }
    if (choice.has_weights()) {
      CheckWeights(job, choice.weights(), absl::StrCat(path, ".weights"), faults);
    }
    if (!choice.has_contributions() && !choice.has_weights()) {
      faults.push_back({path, "chooses nothing: give contributions, weights or both"});
    }
  }
}

}  // namespace leeway
