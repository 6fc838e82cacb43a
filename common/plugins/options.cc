#include "common/plugins/options.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job_key.h"
#include "common/printable.h"
#include "common/status.h"
#include "common/suggestion.h"

namespace leeway {
namespace {

absl::Status AtOption(const absl::Status& status, absl::string_view name) {
  return AtKey(status, absl::StrCat("options.", Printable(name, kWordBytesMax)));
}

absl::Status CheckKnown(const std::vector<plugin::Option>& known, const std::string& name) {
  std::vector<std::string> names;
  for (const plugin::Option& option : known) names.push_back(option.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  const std::string which =
      names.empty() ? "; no options are allowed here" : Suggestion(name, names);
  return AtOption(absl::InvalidArgumentError(absl::StrCat("unknown option", which)), name);
}

absl::StatusOr<double> ValueOf(const plugin::Option& option, const GivenOptions& given) {
  const auto found = given.find(option.name);
  if (found != given.end()) {
    RETURN_IF_ERROR(CheckBounds(option, found->second));
    return found->second;
  }
  if (option.value.has_value()) return *option.value;
  const std::string about = option.about.empty() ? "" : absl::StrCat(": ", option.about);
  return absl::InvalidArgumentError(absl::StrCat("required option is missing", Printable(about)));
}

}  // namespace

absl::Status CheckBounds(const plugin::Option& option, double value) {
  const auto must = [value](absl::string_view what, double bound) {
    return absl::InvalidArgumentError(
        absl::StrCat("must be ", what, " ", bound, "; it is ", value));
  };
  if (!std::isfinite(value)) return absl::InvalidArgumentError("must be a finite number");
  if (option.min.has_value() && value < *option.min) return must("at least", *option.min);
  if (option.above.has_value() && value <= *option.above) return must("above", *option.above);
  if (option.max.has_value() && value > *option.max) return must("at most", *option.max);
  if (option.below.has_value() && value >= *option.below) return must("below", *option.below);
  return absl::OkStatus();
}

absl::StatusOr<plugin::Options> ReadOptions(const std::vector<plugin::Option>& known,
                                            const GivenOptions& given) {
  std::map<std::string, double> sorted(given.begin(), given.end());
  for (const auto& [name, value] : sorted) RETURN_IF_ERROR(CheckKnown(known, name));
  std::map<std::string, double> values;
  for (const plugin::Option& option : known) {
    const absl::StatusOr<double> value = ValueOf(option, given);
    if (!value.ok()) return AtOption(value.status(), option.name);
    values.insert({option.name, *value});
  }
  return plugin::Options(std::move(values));
}

}  // namespace leeway
