#include "common/plugins/open_plugin.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/mutex.h"
#include "common/plugins/guarded.h"
#include "common/plugins/registry_check.h"
#include "common/printable.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr char kEntry[] = "leeway_plugin";

std::vector<std::string> PlacesOf(const std::string& name) {
  if (name.find('/') != std::string::npos) return {name};
  const char* const folders = std::getenv(kPluginPath);
  std::vector<std::string> places;
  for (absl::string_view folder : absl::StrSplit(folders == nullptr ? "" : folders, ':')) {
    if (!folder.empty()) places.push_back(absl::StrCat(folder, "/", name));
  }
  return places;
}

absl::StatusOr<std::string> FindPlugin(const std::string& name) {
  const std::vector<std::string> places = PlacesOf(name);
  for (const std::string& place : places) {
    std::error_code error;
    if (std::filesystem::is_regular_file(place, error)) return place;
  }
  if (places.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "'", name, "' has no slash, so it is searched for in the folders of ", kPluginPath,
        ", which is empty: set it, or give a path with a slash, such as ./", name));
  }
  return absl::NotFoundError(absl::StrCat("no file at ", absl::StrJoin(places, " or "),
                                          ": compile the plugin, or correct the path"));
}

// Loads a plugin and returns its table after checking the version.
absl::StatusOr<const LeewayPlugin*> TableOf(const std::string& path) {
  const auto refuse = [&path](auto&&... why) {
    return absl::FailedPreconditionError(absl::StrCat("the plugin ", path, " ", why...));
  };
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return refuse("cannot be loaded: ", Printable(dlerror()),
                  "; it must be a shared object, compiled with 'g++ -shared -fPIC'");
  }
  void* const entry = dlsym(library, kEntry);
  if (entry == nullptr) {
    return refuse("has no function ", kEntry, ": write LEEWAY_PLUGIN(registry) {...} in it");
  }
  const LeewayPlugin* const table = reinterpret_cast<const LeewayPlugin* (*)()>(entry)();
  if (table == nullptr || table->add == nullptr) return refuse("has a table without functions");
  if (table->version != plugin::kVersion) {
    return refuse("was compiled with version ", table->version,
                  " of leeway/plugin.h, but this program with version ", plugin::kVersion,
                  ": compile it again with this program's header");
  }
  if (absl::string_view(table->library) != LEEWAY_PLUGIN_LIBRARY) {
    return refuse("was compiled with ", Printable(table->library), ", but this program with ",
                  LEEWAY_PLUGIN_LIBRARY, ": compile it again with the same library");
  }
  return table;
}

absl::StatusOr<std::unique_ptr<OpenPlugin>> Open(const std::string& path) {
  ASSIGN_OR_RETURN(const LeewayPlugin* const table, TableOf(path));
  auto opened = std::make_unique<OpenPlugin>(OpenPlugin{path, {}});
  const std::string who = absl::StrCat("the plugin ", path);
  RETURN_IF_ERROR(Annotate(Guarded([&] { table->add(&opened->registry); }), who));
  RETURN_IF_ERROR(Annotate(CheckRegistry(opened->registry), who));
  return opened;
}

// All open plugins, by file. Plugins are never closed, because the code of a plugin must not be
// unloaded while objects of its classes exist.
class OpenPlugins {
 public:
  absl::StatusOr<const OpenPlugin*> Get(const std::string& path) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    std::unique_ptr<OpenPlugin>& known = plugins_[path];
    if (known == nullptr) {
      ASSIGN_OR_RETURN(known, Open(path));
    }
    return known.get();
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::unique_ptr<OpenPlugin>> plugins_ GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<const OpenPlugin*> OpenPluginNamed(const std::string& name) {
  static OpenPlugins& open = *new OpenPlugins();
  ASSIGN_OR_RETURN(const std::string path, FindPlugin(name));
  return open.Get(path);
}

}  // namespace leeway
