#include "worker/data/text/utf8.h"

#include "tests/worker/data/data_test_util.h"

namespace leeway::utf8 {
namespace {

using absl::StatusCode;

TEST_CASE("Every code point is read back from its own UTF-8, and from no part of it") {
  for (uint32_t code = 0; code < kCodePoints; code += code < 0x3000 ? 1 : 97) {
    if (code >= 0xd800 && code < 0xe000) continue;
    const std::string bytes = Utf8(code);
    const auto character = FirstCharacter(bytes + "x");
    REQUIRE(character.has_value());
    REQUIRE(character->code == code);
    REQUIRE(character->bytes == bytes.size());
    for (size_t size = 1; size < bytes.size(); ++size) {
      REQUIRE_FALSE(FirstCharacter(bytes.substr(0, size)).has_value());
    }
  }
}

TEST_CASE("Overlong forms, surrogates and what lies beyond Unicode are not UTF-8") {
  for (const char* bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf8\x88\x80\x80\x80", "\xff", "\xc3x", "\xe2\x82x"}) {
    INFO(bad);
    CHECK_FALSE(FirstCharacter(bad).has_value());
  }
}

TEST_CASE("The place of a character is its line and the characters before it there") {
  const std::string text =
      "ab\nc\xc3\xa9\xe2\x82\xac"
      "d\n";
  CHECK(PlaceInText("f", text, 0) == "f:1:1");
  CHECK(PlaceInText("f", text, 2) == "f:1:3");
  CHECK(PlaceInText("f", text, 3) == "f:2:1");
  CHECK(PlaceInText("f", text, text.find('d')) == "f:2:4");
  CHECK(CheckUtf8("f", text).ok());
  const absl::Status bad = CheckUtf8("f", "ab\nc\xc3\xa9\xff");
  CHECK(bad.code() == StatusCode::kInvalidArgument);
  CHECK(Contains(bad, "f:2:3: byte 6 (0xff) is not UTF-8"));
}

}  // namespace
}  // namespace leeway::utf8
