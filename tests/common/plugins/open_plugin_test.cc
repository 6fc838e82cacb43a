// Plugins are found. Files that are not plugins, and faulty plugins, are refused with the cause.
#include "common/plugins/open_plugin.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/common/plugins/support.h"
#include "tests/temp_folder.h"

namespace leeway::open_plugin {
namespace {

using testing::HasWords;
using testing::PluginFile;

absl::Status StatusOf(const std::vector<std::string>& plugins) {
  v1::Model model;
  for (const std::string& plugin : plugins) model.add_plugins(plugin);
  return Plugins::Load(model).status();
}

TEST_CASE("the example brings a layer, a loss and a rule, and is opened once") {
  const auto plugin = OpenPluginNamed(PluginFile("example"));
  INFO(plugin.status());
  REQUIRE(plugin.ok());
  CHECK((*plugin)->registry.layers.at(0).name == "swish");
  CHECK((*plugin)->registry.losses.at(0).name == "huber");
  CHECK((*plugin)->registry.rules.at(0).name == "signum");
  CHECK(*OpenPluginNamed(PluginFile("example")) == *plugin);
}

TEST_CASE("a name without a slash is looked for in the folders of LEEWAY_PLUGIN_PATH") {
  unsetenv(kPluginPath);
  CHECK(HasWords(StatusOf({"libplugin_example.so"}).message(),
                 {"model.plugins.0: 'libplugin_example.so' has no slash", "LEEWAY_PLUGIN_PATH",
                  "which is empty: set it"}));
  setenv(kPluginPath, "/nowhere::" LEEWAY_TEST_PLUGINS, 1);
  CHECK(StatusOf({"libplugin_example.so"}).ok());
  CHECK(HasWords(StatusOf({"libother.so"}).message(),
                 {"no file at /nowhere/libother.so or " LEEWAY_TEST_PLUGINS "/libother.so"}));
  unsetenv(kPluginPath);
}

TEST_CASE("what is no plugin, or a bad one, is refused with place, cause and remedy") {
  const TempFolder folder;
  const std::string text = folder.path() + "/text.so";
  std::ofstream(text) << "no shared object";
  const std::pair<std::string, std::vector<std::string>> table[] = {
      {"./nowhere/libmine.so", {"no file at ./nowhere/libmine.so: compile the plugin"}},
      {folder.path() + "/", {"no file at"}},
      {text, {"cannot be loaded: ", "must be a shared object"}},
      {PluginFile("bad_no_entry"), {"has no function leeway_plugin: write LEEWAY_PLUGIN"}},
      {PluginFile("bad_no_add"), {"has a table without functions"}},
      {PluginFile("bad_version"),
       {"version 999 of leeway/plugin.h", "this program with version 1", "compile it again"}},
      {PluginFile("bad_library"), {"compiled with another library", "with libstdc++", "again"}},
      {PluginFile("bad_throws"), {"libplugin_bad_throws.so: no licence"}},
      {PluginFile("bad_twice"), {"rule 'same' is registered twice"}},
      {PluginFile("bad_name"), {"the name 'No Name' must have lower-case letters"}},
      {PluginFile("bad_option_twice"), {"rule 'good': option 'a' is registered twice"}},
      {PluginFile("bad_default"), {"rule 'good': the default of option 'a': must be at most 1"}},
      {PluginFile("bad_no_make"), {"rule 'good' has no `make`"}},
  };
  for (const auto& [path, words] : table) {
    const absl::Status status = StatusOf({PluginFile("example"), path});
    INFO(path << ": " << status);
    CHECK_FALSE(status.ok());
    CHECK(HasWords(status.message(), {"model.plugins.1: "}));
    CHECK(HasWords(status.message(), words));
  }
}

TEST_CASE("two plugins with the same name are refused, with both") {
  const TempFolder folder;
  const std::string copy = folder.path() + "/libcopy.so";
  std::filesystem::copy_file(PluginFile("example"), copy);
  CHECK(HasWords(StatusOf({PluginFile("example"), copy}).message(),
                 {"model.plugins: ", "libplugin_example.so and ",
                  "libcopy.so both have a layer "
                  "'swish': name only one of the plugins"}));
}

}  // namespace
}  // namespace leeway::open_plugin
