// Opens one plugin: a shared object with layers, losses or update rules from any author.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "plugin/leeway/plugin.h"

namespace leeway {

// The variable that lists folders of plugins, separated by colons.
inline constexpr char kPluginPath[] = "LEEWAY_PLUGIN_PATH";

struct OpenPlugin {
  // The path at which the file was found.
  std::string path;
  plugin::Registry registry;
};

// Opens the plugin that a job names: at the path if the name has a slash, otherwise in the
// folders of LEEWAY_PLUGIN_PATH. A process opens each plugin once and never closes it.
// Thread-safe. Returns NOT_FOUND if the file does not exist. Returns FAILED_PRECONDITION if the
// file is not a plugin, has another version, or fails the checks.
absl::StatusOr<const OpenPlugin*> OpenPluginNamed(const std::string& name);

}  // namespace leeway
