// One plugin: a shared object with layers, losses or update rules, by whoever wrote it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "plugin/leeway/plugin.h"

namespace leeway {

// Where folders of plugins are named, with colons between them.
inline constexpr char kPluginPath[] = "LEEWAY_PLUGIN_PATH";

struct OpenPlugin {
  // The file, as it was found.
  std::string path;
  plugin::Registry registry;
};

// The plugin that a job names: a path with a slash as it is, another one in the folders of
// LEEWAY_PLUGIN_PATH. Each is opened once in a process, and stays; thread-safe. NOT_FOUND: there is
// no such file. FAILED_PRECONDITION: it is no plugin, is of another version, or is wrong in itself.
absl::StatusOr<const OpenPlugin*> OpenPluginNamed(const std::string& name);

}  // namespace leeway
