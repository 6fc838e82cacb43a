// Reads YAML into a tree of nodes, each with its place in the source.
//
// yaml-cpp's own nodes silently drop duplicate keys and follow aliases. So this code builds its own
// tree from the events of yaml-cpp's parser. The tree keeps duplicate keys, which the reader of the
// job refuses. Aliases, anchors, tags, a second document and deep nesting are refused at once.
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
// The deepest nesting. It is enough for kLayerDepthMax nested layers (model/layer_tree.h), each of
// which needs three levels.
constexpr size_t kYamlDepthMax = 64;

struct YamlEntry;

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  Origin origin;
  // The text of a scalar. Empty for other nodes.
  std::string text;
  bool quoted = false;
  std::vector<YamlNode> items;
  std::vector<YamlEntry> entries;

  // Returns the first entry of this key, or nullptr if the key is absent or the node is not a map.
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

// Reads `text`, which must have only one document. Returns INVALID_ARGUMENT, with the place, if the
// text is not YAML or is refused. Returns a null node for an empty text.
absl::StatusOr<YamlNode> ReadYaml(std::string_view text, std::shared_ptr<const Source> source);

// Returns the place of the value at `path` ("model.layers.3.dense"). If the value is absent,
// returns where the innermost map around it begins, or the override that chose that map's type. If
// a single value stands for a list, cuts `path` off at that value.
Origin Locate(const YamlNode& root, std::string& path);

}  // namespace leeway
