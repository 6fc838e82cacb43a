#include "common/plugins/plugins.h"

#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/job_key.h"
#include "common/plugins/options.h"
#include "common/printable.h"
#include "common/status.h"
#include "common/suggestion.h"

namespace leeway {
namespace {

using Opened = std::vector<const OpenPlugin*>;

// Checks that no two plugins have an entry of this kind ("layer", "loss" or "rule") with the same
// name.
template <typename Spec>
absl::Status CheckUnique(const Opened& plugins, absl::string_view kind,
                         std::vector<Spec> plugin::Registry::*specs) {
  std::map<std::string, std::string> first;
  for (const OpenPlugin* const brought : plugins) {
    for (const Spec& spec : brought->registry.*specs) {
      const auto [found, is_new] = first.insert({spec.name, brought->path});
      if (is_new) continue;
      return AtKey(
          absl::FailedPreconditionError(absl::StrCat(
              found->second, " and ", brought->path, " both have a ", kind, " '", spec.name,
              "': name only one of the plugins, or rename what one of them registers")),
          "model.plugins");
    }
  }
  return absl::OkStatus();
}

// Finds the entry of this kind with `name`, for which the job's key is `key`.
template <typename Spec>
absl::StatusOr<ChosenPlugin<Spec>> Find(const Opened& plugins, absl::string_view kind,
                                        std::vector<Spec> plugin::Registry::*specs,
                                        const std::string& name, absl::string_view key,
                                        const GivenOptions& given) {
  std::vector<std::string> known;
  for (const OpenPlugin* const brought : plugins) {
    for (const Spec& spec : brought->registry.*specs) {
      known.push_back(spec.name);
      if (spec.name != name) continue;
      ASSIGN_OR_RETURN(plugin::Options options, ReadOptions(spec.options, given));
      return ChosenPlugin<Spec>{&spec, std::move(options)};
    }
  }
  const std::string which =
      known.empty() ? absl::StrCat("; they have no ", kind, " at all") : Suggestion(name, known);
  return AtKey(absl::InvalidArgumentError(absl::StrCat("the job's plugins have no ", kind, " '",
                                                       Printable(name, kWordBytesMax), "'", which)),
               key);
}

}  // namespace

absl::StatusOr<Plugins> Plugins::Load(const v1::Model& model) {
  Plugins all;
  for (int i = 0; i < model.plugins_size(); ++i) {
    const auto opened = OpenPluginNamed(model.plugins(i));
    if (!opened.ok()) return AtKey(opened.status(), absl::StrCat("model.plugins.", i));
    all.plugins_.push_back(*opened);
  }
  RETURN_IF_ERROR(CheckUnique(all.plugins_, "layer", &plugin::Registry::layers));
  RETURN_IF_ERROR(CheckUnique(all.plugins_, "loss", &plugin::Registry::losses));
  RETURN_IF_ERROR(CheckUnique(all.plugins_, "rule", &plugin::Registry::rules));
  return all;
}

absl::StatusOr<ChosenPlugin<plugin::LayerSpec>> Plugins::Layer(const v1::Custom& custom) const {
  return Find(plugins_, "layer", &plugin::Registry::layers, custom.name(), "name",
              custom.options());
}

absl::StatusOr<ChosenPlugin<plugin::LossSpec>> Plugins::Loss(const v1::Custom& custom) const {
  return Find(plugins_, "loss", &plugin::Registry::losses, custom.name(), "name", custom.options());
}

absl::StatusOr<ChosenPlugin<plugin::RuleSpec>> Plugins::Rule(const v1::CustomRule& custom) const {
  return Find(plugins_, "rule", &plugin::Registry::rules, custom.rule(), "rule", custom.options());
}

}  // namespace leeway
