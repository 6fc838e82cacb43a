#include "config/validate.h"

#include <map>
#include <string_view>

#include <google/protobuf/descriptor.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "config/combinations.h"
#include "config/compression.h"
#include "config/data.h"
#include "config/device.h"
#include "config/external.h"
#include "config/model/layer_tree.h"
#include "config/plugins.h"
#include "config/topology_checks.h"

namespace leeway {
namespace {

constexpr size_t kJobNameMax = 100;

using Faults = std::vector<Fault>;

bool IsName(std::string_view name, std::string_view others) {
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) && others.find(c) == std::string_view::npos) return false;
  }
  return !name.empty() && name.size() <= kJobNameMax;
}

// ---- single messages

void CheckName(const v1::Metadata& metadata, Faults& faults) {
  if (metadata.name().empty()) return;  // Another check reports this.
  if (!IsName(metadata.name(), "-_.") || metadata.name()[0] == '.') {
    faults.push_back({"metadata.name",
                      "must have at most 100 letters, digits, '-', '_' and '.', and not begin with "
                      "'.', because it names the run folder"});
  }
}

void CheckUpdate(const v1::Update& update, const std::string& path, Faults& faults) {
  if (update.sgd().nesterov() && update.sgd().momentum() == 0) {
    faults.push_back({absl::StrCat(path, ".nesterov"), "needs a momentum above 0"});
  }
  if (update.adam().initial_v() > 0 && update.adam().bias_correction()) {
    faults.push_back({absl::StrCat(path, ".initial_v"),
                      "the bias correction assumes that v starts at 0: set bias_correction: false "
                      "too, as in FedAdam's paper"});
  }
}

// ---- whether parts are compatible; combinations.h checks the three knobs

// Checks the names in a list of layers and in the lists within it, and how deeply the lists are
// nested.
class LayerListCheck {
 public:
  explicit LayerListCheck(Faults& faults) : faults_(faults) {}

  void Check(const Branch& list, int depth) {
    if (depth > kLayerDepthMax) {
      faults_.push_back({list.key, absl::StrCat("more than ", kLayerDepthMax,
                                                " layers are nested: make the model flatter")});
      return;
    }
    std::map<std::string, std::string> first;
    for (int i = 0; i < list.layers->size(); ++i) {
      const v1::Layer& layer = (*list.layers)[i];
      const std::string key = absl::StrCat(list.key, ".", i);
      const std::string own_name = LayerName(layer, i);
      const std::string name = absl::StrCat(list.name_prefix, own_name);
      const std::string named_at = absl::StrCat(key, layer.has_name() ? ".name" : "");
      if (layer.has_name() && !IsName(own_name, "-_")) {
        faults_.push_back({named_at, "must have at most 100 letters, digits, '-' and '_'"});
      }
      const auto [found, is_new] = first.insert({name, key});
      if (!is_new) AddTaken(named_at, name, found->second);
      for (const Branch& branch : BranchesOf(layer, name, key)) {
        Check(branch, depth + 1);
        // All repetitions are alike, so one check is enough.
        if (layer.has_repeat()) break;
      }
    }
  }

  void AddTaken(const std::string& key, const std::string& name, const std::string& by) {
    faults_.push_back({key, absl::StrCat("the name '", name, "' is already used by ", by)});
  }

 private:
  Faults& faults_;
};

// Checks the model. Returns false if it has too many layers or nests them too deeply. Then no other
// check may walk the layers.
bool CheckModel(const v1::Model& model, Faults& faults) {
  const size_t before = faults.size();
  if (CountLayers(model) > kLayersMax) {
    faults.push_back(
        {"model.layers", absl::StrCat("counting nested layers, the model has more "
                                      "than ",
                                      kLayersMax, " layers: repeat them fewer times")});
    return false;
  }
  LayerListCheck lists(faults);
  lists.Check({"", "model.layers", &model.layers()}, 1);
  if (faults.size() > before) return false;
  if (model.label_smoothing() > 0 && model.loss() != v1::LOSS_SOFTMAX_CROSS_ENTROPY) {
    faults.push_back({"model.label_smoothing",
                      "spreads a label over classes: it goes with loss softmax_cross_entropy"});
  }
  // Compare full names, because a layer that the user names `shortcut` gives its inner layers the
  // same names as a residual's shortcut does.
  std::map<std::string, std::string> first;
  bool trains = false;
  for (const PlacedLayer& placed : FlattenLayers(model)) {
    trains = trains || HasWeights(*placed.layer);
    const auto [found, is_new] = first.insert({placed.name, placed.key});
    if (!is_new) lists.AddTaken(placed.key, placed.name, found->second);
  }
  if (!trains) {
    faults.push_back(
        {"model.layers", "nothing to train: needs a layer with weights, such as dense or conv2d"});
  }
  return true;
}

void CheckDevice(const v1::Workers& workers, Faults& faults) {
  if (ParseDevice(workers.device()).has_value() || workers.device().empty()) return;
  faults.push_back(
      {"workers.device", absl::StrCat("must be auto, cpu, cuda or cuda:N with N from 0 to ",
                                      kDeviceIndexMax, "; it is '", workers.device(), "'")});
}

void CheckEmulation(const v1::Workers& workers, Faults& faults) {
  for (int i = 0; i < workers.emulate().slow_size(); ++i) {
    const v1::Slowdown& slow = workers.emulate().slow(i);
    for (int k = 0; k < slow.ranks_size(); ++k) {
      if (slow.ranks(k) < workers.count()) continue;
      faults.push_back({absl::StrCat("workers.emulate.slow.", i, ".ranks.", k),
                        absl::StrCat("rank ", slow.ranks(k), " does not exist: ", workers.count(),
                                     " workers have ranks 0 to ", workers.count() - 1)});
    }
  }
}

}  // namespace

std::vector<Fault> FindFieldFaults(const v1::TrainingJob& job) {
  Faults faults;
  CheckRules(job, "", faults);
  CheckName(job.metadata(), faults);
  CheckExternal(job, faults);
  CheckDataFields(job.data(), faults);
  CheckUpdate(job.update(), "update", faults);
  CheckUpdate(job.exchange().delta().optimizer(), "exchange.optimizer", faults);
  CheckUpdate(job.exchange().elastic().optimizer(), "exchange.optimizer", faults);
  CheckDevice(job.workers(), faults);
  CheckGroup(job.topology(), faults);
  return faults;
}

std::vector<Fault> FindJobFaults(const v1::TrainingJob& job) {
  Faults faults;
  // A job that was read from YAML has this key, but a job from a message may lack it.
  if (!job.has_exchange()) faults.push_back({"exchange", "required key is missing"});
  if (IsExternal(job) || CheckModel(job.model(), faults)) CheckPlugins(job, faults);
  CheckData(job, faults);
  CheckCombinations(job, faults);
  CheckEmulation(job.workers(), faults);
  CheckCompression(job, faults);
  return faults;
}

std::vector<Fault> FindUpdateFaults(const v1::Update& update) {
  Faults faults;
  CheckRules(update, "update", faults);
  CheckUpdate(update, "update", faults);
  return faults;
}

absl::Status ValidateJob(const v1::TrainingJob& job) {
  Faults faults = FindFieldFaults(job);
  if (faults.empty()) faults = FindJobFaults(job);
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrJoin(faults, "\n", [](std::string* out, const Fault& fault) {
        absl::StrAppend(out, "job: ", fault.path, ": ", fault.message);
      }));
}

}  // namespace leeway
