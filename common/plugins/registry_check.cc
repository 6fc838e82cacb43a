#include "common/plugins/registry_check.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/plugins/options.h"
#include "common/printable.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr size_t kPluginNameMax = 100;

absl::Status BadName(absl::string_view name) {
  return absl::FailedPreconditionError(
      absl::StrCat("the name '", Printable(name, kPluginNameMax),
                   "' must have lower-case letters, digits and '_' only, and begin with a letter"));
}

absl::Status CheckOptionList(const std::vector<plugin::Option>& options) {
  std::set<std::string> names;
  for (const plugin::Option& option : options) {
    if (!IsPluginName(option.name)) return BadName(option.name);
    if (!names.insert(option.name).second) {
      return absl::FailedPreconditionError(
          absl::StrCat("option '", option.name, "' is registered twice"));
    }
    if (!option.value.has_value()) continue;
    RETURN_IF_ERROR(Annotate(CheckBounds(option, *option.value),
                             absl::StrCat("the default of option '", option.name, "'")));
  }
  return absl::OkStatus();
}

template <typename Spec>
absl::Status CheckSpecs(absl::string_view kind, const std::vector<Spec>& specs) {
  std::set<std::string> names;
  for (const Spec& spec : specs) {
    if (!IsPluginName(spec.name)) return Annotate(BadName(spec.name), kind);
    const std::string who = absl::StrCat(kind, " '", spec.name, "'");
    if (!names.insert(spec.name).second) {
      return absl::FailedPreconditionError(absl::StrCat(who, " is registered twice"));
    }
    if (!spec.make) return absl::FailedPreconditionError(absl::StrCat(who, " has no `make`"));
    RETURN_IF_ERROR(Annotate(CheckOptionList(spec.options), who));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsPluginName(absl::string_view name) {
  if (name.empty() || name.size() > kPluginNameMax || !absl::ascii_islower(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
  });
}

absl::Status CheckRegistry(const plugin::Registry& registry) {
  RETURN_IF_ERROR(CheckSpecs("layer", registry.layers));
  RETURN_IF_ERROR(CheckSpecs("loss", registry.losses));
  return CheckSpecs("rule", registry.rules);
}

}  // namespace leeway
