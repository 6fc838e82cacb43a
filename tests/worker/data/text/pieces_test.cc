#include "worker/data/text/pieces.h"

#include "tests/worker/data/data_test_util.h"

namespace leeway::pieces {
namespace {

using Pieces = std::vector<std::string>;

Pieces Cut(const std::string& text) {
  const PieceCutter cutter;
  Pieces pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t end = cutter.EndOf(text, at);
    REQUIRE(end > at);
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

TEST_CASE("Text is cut as by GPT-2's expression") {
  CHECK(Cut("Hello world, it's 2019!") ==
        Pieces{"Hello", " world", ",", " it", "'s", " 2019", "!"});
  CHECK(Cut("we'll they've I'm you'd don't 'tis're") == Pieces{"we", "'ll", " they", "'ve", " I",
                                                               "'m", " you", "'d", " don", "'t",
                                                               " '", "tis", "'re"});
  CHECK(Cut("x1.5%") == Pieces{"x", "1", ".", "5", "%"});
}

TEST_CASE("The last space before a word goes with the word, the others are a piece") {
  CHECK(Cut("a   b") == Pieces{"a", "  ", " b"});
  CHECK(Cut("a\n\nb") == Pieces{"a", "\n", "\n", "b"});
  CHECK(Cut("a \n b") == Pieces{"a", " \n", " b"});
  CHECK(Cut("a  ") == Pieces{"a", "  "});
  CHECK(Cut(" ") == Pieces{" "});
  CHECK(Cut("  !") == Pieces{" ", " !"});
  CHECK(Cut("\tx") == Pieces{"\t", "x"});
}

TEST_CASE("Letters, numbers and white space are those of Unicode") {
  // An ideographic space (U+3000), a no-break space (U+00A0) and U+0085 count as white space.
  CHECK(Cut("a\xe3\x80\x80\xe3\x80\x80"
            "b") == Pieces{"a", "\xe3\x80\x80", "\xe3\x80\x80", "b"});
  CHECK(Cut("a\xc2\xa0!") == Pieces{"a", "\xc2\xa0", "!"});
  CHECK(Cut("\xc2\x85") == Pieces{"\xc2\x85"});
  // Cyrillic letters, an Arabic digit, a Roman numeral, an emoji.
  CHECK(Cut("\xd0\xb4\xd0\xb0 \xd9\xa3") == Pieces{"\xd0\xb4\xd0\xb0", " \xd9\xa3"});
  CHECK(Cut("\xe2\x85\xa3\xf0\x9f\x98\x80") == Pieces{"\xe2\x85\xa3", "\xf0\x9f\x98\x80"});
}

}  // namespace
}  // namespace leeway::pieces
