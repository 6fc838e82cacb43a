// YAML text as a tree of nodes that know where they came from.
//
// yaml-cpp's own nodes silently drop duplicate keys and follow aliases. So the tree is built from
// its parser's events. It keeps duplicates, which the reader refuses. It refuses aliases, anchors,
// tags, a second document and deep nesting at once.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "config/problems.h"

namespace leeway {

constexpr size_t kYamlBytesMax = 1 << 20;
// Enough for kLayerDepthMax layers within layers (model/layer_tree.h), each of which takes three
// levels.
constexpr size_t kYamlDepthMax = 64;

struct YamlEntry;

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  Origin origin;
  // Set for a scalar.
  std::string text;
  bool quoted = false;
  std::vector<YamlNode> items;
  std::vector<YamlEntry> entries;

  // The first entry of this key. nullptr if the key is absent or the node is not a map.
  const YamlEntry* Find(std::string_view key) const;
  YamlEntry* Find(std::string_view key);
  // Removes the entries of this key, if any.
  void Erase(std::string_view key);
};

struct YamlEntry {
  std::string key;
  Origin origin;
  YamlNode value;
};

// Reads the one document in `text`. INVALID_ARGUMENT, with the place, if the text is not YAML or is
// refused. An empty text is a null node.
absl::StatusOr<YamlNode> ReadYaml(std::string_view text, std::shared_ptr<const Source> source);

// Where the value at `path` ("model.layers.3.dense") came from. If it is absent: where the
// innermost map around it begins, or the override that chose that map's type. `path` is cut at a
// single value that stands for a list.
Origin Locate(const YamlNode& root, std::string& path);

}  // namespace leeway
