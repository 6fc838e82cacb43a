// Checks what a plugin has registered, once when it is opened.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "plugin/leeway/plugin.h"

namespace leeway {

// Whether the name begins with a lower-case letter and continues with lower-case letters, digits
// and '_'; at most 100 characters.
bool IsPluginName(absl::string_view name);

// FAILED_PRECONDITION, naming the mistake: a name that is not valid, a default out of its own
// bounds, a missing function.
absl::Status CheckRegistry(const plugin::Registry& registry);

}  // namespace leeway
