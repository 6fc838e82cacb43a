#include "launcher/supervision/screen.h"

#include "tests/catch.h"

namespace leeway::screen {
namespace {

std::vector<ViewLine> Lines(std::initializer_list<const char*> texts) {
  std::vector<ViewLine> lines;
  for (const char* text : texts) lines.push_back({text});
  return lines;
}

}  // namespace

TEST_CASE("An unchanged block writes nothing") {
  CHECK(RedrawBytes(Lines({"a", "b"}), Lines({"a", "b"})).empty());
}

TEST_CASE("Only the lines that differ are written") {
  CHECK(RedrawBytes(Lines({"a", "b", "c"}), Lines({"a", "B", "c"})) ==
        "\r\033[3A\r\nB\033[0m\033[K\r\n\r\n");
}

TEST_CASE("A block that shrinks clears what is below it") {
  CHECK(RedrawBytes(Lines({"a", "b"}), Lines({"a"})) == "\r\033[2A\r\n\033[J");
}

TEST_CASE("The first block begins where the cursor is") {
  CHECK(RedrawBytes({}, Lines({"a"})) == "\ra\033[0m\033[K\r\n");
}

}  // namespace leeway::screen
