#include "config/plugins.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "config/model/layer_tree.h"

namespace leeway {
namespace {

using Faults = std::vector<Fault>;

// The keys of a job that use plugins.
struct Uses {
  // The keys of layers and of the loss, which compute on the workers' device.
  std::vector<std::string> of_model;
  std::vector<std::string> servers_rule;
  std::vector<std::string> workers_rule;
};

Uses UsesOf(const v1::TrainingJob& job) {
  Uses uses;
  for (const PlacedLayer& placed : FlattenLayers(job.model())) {
    if (placed.layer->has_custom()) uses.of_model.push_back(absl::StrCat(placed.key, ".custom"));
  }
  if (job.model().has_custom_loss()) uses.of_model.push_back("model.custom_loss");
  if (job.update().has_custom()) uses.servers_rule.push_back("update");
  const v1::Exchange& exchange = job.exchange();
  const bool local =
      exchange.delta().optimizer().has_custom() || exchange.elastic().optimizer().has_custom();
  if (local) uses.workers_rule.push_back("exchange.optimizer");
  return uses;
}

void CheckCustomLoss(const v1::Model& model, Faults& faults) {
  if (model.loss() == v1::LOSS_CUSTOM && !model.has_custom_loss()) {
    faults.push_back(
        {"model.custom_loss",
         "required key is missing with loss custom: name the loss of a plugin, such as "
         "custom_loss: {name: huber}"});
  } else if (model.loss() != v1::LOSS_CUSTOM && model.has_custom_loss()) {
    faults.push_back({"model.custom_loss", "goes with loss: custom only"});
  }
}

}  // namespace

void CheckPlugins(const v1::TrainingJob& job, std::vector<Fault>& faults) {
  CheckCustomLoss(job.model(), faults);
  const Uses uses = UsesOf(job);
  for (const auto* keys : {&uses.of_model, &uses.servers_rule, &uses.workers_rule}) {
    if (keys->empty() || job.model().plugins_size() > 0) continue;
    faults.push_back(
        {keys->front(),
         "comes from a plugin: name the plugin, such as model.plugins: [./libmine.so]"});
  }
  if (!absl::StartsWith(job.workers().device(), "cuda")) return;
  for (const auto* keys : {&uses.of_model, &uses.workers_rule}) {
    if (keys->empty()) continue;
    faults.push_back(
        {"workers.device", absl::StrCat(keys->front(),
                                        " comes from a plugin, which computes on the CPU: "
                                        "set device: cpu")});
    return;
  }
}

}  // namespace leeway
