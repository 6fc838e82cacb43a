// Checks what a plugin has registered, when the plugin is opened.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "plugin/leeway/plugin.h"

namespace leeway {

// Returns whether the name has at most 100 characters, begins with a lower-case letter and
// continues with lower-case letters, digits and '_'.
bool IsPluginName(absl::string_view name);

// Returns FAILED_PRECONDITION, naming the mistake, if a name is not valid or occurs twice, if the
// default of an option is out of the option's bounds, or if a function is missing.
absl::Status CheckRegistry(const plugin::Registry& registry);

}  // namespace leeway
