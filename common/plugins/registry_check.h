// What a plugin has registered, checked once when it is opened.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "plugin/leeway/plugin.h"

namespace leeway {

// A small letter, then small letters, digits and '_'; at most 100.
bool IsPluginName(absl::string_view name);

// FAILED_PRECONDITION naming what is wrong: a name, a default beyond its own bounds, no function.
absl::Status CheckRegistry(const plugin::Registry& registry);

}  // namespace leeway
