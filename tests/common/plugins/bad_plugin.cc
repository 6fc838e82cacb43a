// A plugin with one fault, which a compile definition selects.
#include "leeway/plugin.h"

namespace {

using namespace leeway::plugin;

RuleSpec Rule(const std::string& name, std::vector<Option> options = {}) {
  return {name, std::move(options), [](const Options&) { return nullptr; }};
}

// If the plugin has no entry, this is never called.
[[maybe_unused]] void Fill(Registry& registry) {
#if defined(BAD_TWICE)
  registry.Add(Rule("same"));
  registry.Add(Rule("same"));
#elif defined(BAD_NAME)
  registry.Add(Rule("No Name"));
#elif defined(BAD_OPTION_TWICE)
  registry.Add(Rule("good", {{.name = "a"}, {.name = "a"}}));
#elif defined(BAD_DEFAULT)
  registry.Add(Rule("good", {{.name = "a", .value = 2, .max = 1}}));
#elif defined(BAD_NO_MAKE)
  registry.Add(RuleSpec{.name = "good"});
#elif defined(BAD_THROWS)
  throw std::runtime_error("no licence");
#endif
  registry.Add(Rule("rule"));
}

}  // namespace

#if defined(BAD_VERSION)
constexpr uint32_t kThisVersion = 999;
#else
constexpr uint32_t kThisVersion = kVersion;
#endif
#if defined(BAD_LIBRARY)
constexpr char kThisLibrary[] = "another library";
#else
constexpr char kThisLibrary[] = LEEWAY_PLUGIN_LIBRARY;
#endif

#if !defined(BAD_NO_ENTRY)
extern "C" const LeewayPlugin* leeway_plugin() {
#if defined(BAD_NO_ADD)
  static const LeewayPlugin plugin = {kThisVersion, kThisLibrary, nullptr};
#else
  static const LeewayPlugin plugin = {kThisVersion, kThisLibrary,
                                      [](void* to) { Fill(*static_cast<Registry*>(to)); }};
#endif
  return &plugin;
}
#endif
