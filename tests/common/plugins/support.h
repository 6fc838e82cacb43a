// The plugins that the tests are built with.
#pragma once

#include <string>

#include <google/protobuf/text_format.h>

#include "common/plugins/plugins.h"
#include "tests/catch.h"

namespace leeway::testing {

inline std::string PluginFile(const std::string& name) {
  return std::string(LEEWAY_TEST_PLUGINS "/libplugin_") + name + ".so";
}

inline Plugins LoadedPlugins(const std::vector<std::string>& names) {
  v1::Model model;
  for (const std::string& name : names) model.add_plugins(PluginFile(name));
  const auto plugins = Plugins::Load(model);
  INFO(plugins.status());
  REQUIRE(plugins.ok());
  return *plugins;
}

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

// Whether the text has the words, one after the other.
inline bool HasWords(absl::string_view text, const std::vector<std::string>& words) {
  size_t at = 0;
  for (const std::string& word : words) {
    at = text.find(word, at);
    if (at == absl::string_view::npos) return false;
  }
  return true;
}

}  // namespace leeway::testing
