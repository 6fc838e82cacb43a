#include "config/yaml_tree.h"

#include <memory>

#include "tests/catch.h"

namespace leeway::yaml_tree {
namespace {

std::shared_ptr<const Source> File() {
  return std::make_shared<const Source>(Source{"job.yaml", false, ""});
}

std::string PlaceOf(const YamlNode& root, std::string path) {
  const Origin origin = Locate(root, path);
  return Describe(origin, path, "here");
}

TEST_CASE("every node knows its line and column") {
  const absl::StatusOr<YamlNode> root = ReadYaml("a: 1\nb:\n  c: [x, 'y']\n  d:\n", File());
  REQUIRE(root.ok());
  CHECK(PlaceOf(*root, "a") == "job.yaml:1:4: a: here");
  CHECK(PlaceOf(*root, "b.c") == "job.yaml:3:6: b.c: here");
  CHECK(PlaceOf(*root, "b.c.1") == "job.yaml:3:10: b.c.1: here");
  // The place of a missing value is that of its key, or of the map around it.
  CHECK(PlaceOf(*root, "b.d") == "job.yaml:4:3: b.d: here");
  CHECK(PlaceOf(*root, "b.e.f") == "job.yaml:2:1: b.e.f: here");
  CHECK(PlaceOf(*root, "z") == "job.yaml:1:1: z: here");
  // A single value that stands for a list of one.
  CHECK(PlaceOf(*root, "a.0") == "job.yaml:1:4: a: here");
}

TEST_CASE("duplicate keys are kept for the reader to see") {
  const absl::StatusOr<YamlNode> root = ReadYaml("{a: 1, a: 2}", File());
  REQUIRE(root.ok());
  CHECK(root->entries.size() == 2);
  CHECK(root->Find("a")->value.text == "1");
}

TEST_CASE("quoted texts and plain ones are told apart") {
  const absl::StatusOr<YamlNode> root =
      ReadYaml("[3, '3', \"3\", 'it''s', \"a\\\"b\", ~, '~']", File());
  REQUIRE(root.status().ToString() == "OK");
  REQUIRE(root->items.size() == 7);
  CHECK_FALSE(root->items[0].quoted);
  CHECK(root->items[1].quoted);
  CHECK(root->items[2].quoted);
  CHECK(root->items[3].text == "it's");
  CHECK(root->items[4].text == "a\"b");
  CHECK(root->items[5].kind == YamlNode::Kind::kNull);
  CHECK(root->items[6].text == "~");
  CHECK_FALSE(ReadYaml("'open", File()).ok());
  CHECK_FALSE(ReadYaml("\"open\\\"", File()).ok());
  CHECK_FALSE(ReadYaml("'open''", File()).ok());
}

TEST_CASE("a byte order mark at the start is no harm") {
  const absl::StatusOr<YamlNode> root = ReadYaml(
      "\xEF\xBB\xBF"
      "a: 'b'\n",
      File());
  REQUIRE(root.status().ToString() == "OK");
  CHECK(root->Find("a")->value.text == "b");
}

TEST_CASE("nesting is fine up to the limit") {
  const std::string most = std::string(kYamlDepthMax, '[') + std::string(kYamlDepthMax, ']');
  CHECK(ReadYaml(most, File()).ok());
  CHECK(ReadYaml("[" + most + "]", File()).status().message() ==
        "job.yaml:1:65: nested deeper than 64 levels");
}

}  // namespace
}  // namespace leeway::yaml_tree
