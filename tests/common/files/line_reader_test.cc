#include "common/files/line_reader.h"

#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::line_reader {
namespace {

// Formats lines as "number:text"; "..." is a line that is too long, "|" one without its end.
std::vector<std::string> Lines(const std::string& content, size_t line_bytes_max) {
  const TempFolder folder;
  REQUIRE(WriteFileAtomically(folder / "text", content).ok());
  auto reader = LineReader::Open(folder / "text", line_bytes_max);
  REQUIRE(reader.ok());
  std::vector<std::string> lines;
  while (true) {
    const auto line = reader->Next();
    REQUIRE(line.ok());
    if (!line->has_value()) return lines;
    lines.push_back(std::to_string((*line)->number) + ":" + std::string((*line)->text) +
                    ((*line)->too_long ? "..." : "") + ((*line)->complete ? "" : "|"));
  }
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("A file's lines come one after the other") {
  CHECK(Lines("", 9) == Strings{});
  CHECK(Lines("a\n", 9) == Strings{"1:a"});
  CHECK(Lines("a\n\nbc", 9) == Strings{"1:a", "2:", "3:bc|"});
  CHECK(Lines("\n", 9) == Strings{"1:"});
}

TEST_CASE("Of a line that is too long there is the beginning, and the next one is whole") {
  CHECK(Lines("abcdef\nabc\nabcd", 3) == Strings{"1:abc...", "2:abc", "3:abc...|"});
}

TEST_CASE("Lines may lie across the chunks that are read, and be longer than they are") {
  for (const size_t length : {(256u << 10) - 1, 256u << 10, (256u << 10) + 1, 3u << 20}) {
    const std::string line(length, 'x');
    CHECK(Lines(line + "\n" + line + "\ny\n", length) == Strings{"1:" + line, "2:" + line, "3:y"});
    CHECK(Lines(line + "\n" + line + "\ny\n" + line, 2) ==
          Strings{"1:xx...", "2:xx...", "3:y", "4:xx...|"});
  }
}

}  // namespace leeway::line_reader
