#include "worker/data/text/byte_pairs.h"

#include "tests/worker/data/data_test_util.h"

namespace leeway::byte_pairs {
namespace {

using absl::StatusCode;
using Numbers = std::vector<uint32_t>;

// Letters a to e are tokens 0 to 4; the results of merges follow.
BytePairTables Letters(const std::vector<std::pair<std::string, std::string>>& merges) {
  BytePairTables tables;
  for (const char* letter : {"a", "b", "c", "d", "e"}) {
    tables.tokens.emplace_back(letter, tables.tokens.size());
  }
  tables.merges = merges;
  for (const auto& [left, right] : merges) {
    tables.tokens.emplace_back(left + right, tables.tokens.size());
  }
  tables.merges_place = "merges.txt";
  return tables;
}

Numbers Encode(const BytePairs& pairs, const std::string& piece) {
  Numbers out;
  pairs.Encode(piece, out);
  return out;
}

TEST_CASE("Of two neighbours the pair whose merge is first becomes one token") {
  const BytePairs pairs = *BytePairs::Create(Letters({{"b", "c"}, {"a", "b"}, {"bc", "d"}}));
  CHECK(pairs.vocabulary() == 8);
  CHECK(Encode(pairs, "abc") == Numbers{0, 5});
  CHECK(Encode(pairs, "abd") == Numbers{6, 3});
  CHECK(Encode(pairs, "abcd") == Numbers{0, 7});
  CHECK(Encode(pairs, "e") == Numbers{4});
  CHECK(Encode(pairs, "").empty());
}

TEST_CASE("Of overlapping pairs the leftmost is merged") {
  const BytePairs pairs = *BytePairs::Create(Letters({{"a", "a"}, {"aa", "aa"}}));
  CHECK(Encode(pairs, "aaa") == Numbers{5, 0});
  CHECK(Encode(pairs, "aaaa") == Numbers{6});
  CHECK(Encode(pairs, "aaaaaaa") == Numbers{6, 5, 0});
  // The time must not be quadratic: a piece may be as long as a file.
  const Numbers many = Encode(pairs, std::string(1 << 20, 'a'));
  CHECK(many == Numbers(1 << 18, 6));
}

TEST_CASE("Tokens are written in GPT-2's alphabet of bytes") {
  BytePairTables tables;
  // A space, a line feed, 0x00, 0xad, and the two bytes of an umlaut.
  for (const char* token :
       {"\xc4\xa0", "\xc4\x8a", "\xc4\x80", "\xc5\x83", "\xc3\x83", "\xc2\xa4"}) {
    tables.tokens.emplace_back(token, tables.tokens.size());
  }
  tables.tokens.emplace_back("\xc3\x83\xc2\xa4", 6);
  tables.merges = {{"\xc3\x83", "\xc2\xa4"}};
  tables.special = {9};
  const BytePairs pairs = *BytePairs::Create(tables);
  CHECK(Encode(pairs, std::string(" \n\0\xad", 4)) == Numbers{0, 1, 2, 3});
  CHECK(Encode(pairs, "\xc3\xa4") == Numbers{6});
  CHECK(pairs.vocabulary() == 10);
  CHECK(pairs.knows(' '));
  CHECK_FALSE(pairs.knows('a'));
}

TEST_CASE("Merges that the vocabulary lacks, and numbers that are too large, are errors") {
  BytePairTables tables = Letters({{"a", "b"}});
  tables.merges.emplace_back("ab", "c");
  RequireError(BytePairs::Create(tables), StatusCode::kInvalidArgument,
               {"merges.txt: merge 2 of 'ab' and 'c'"});
  tables = Letters({});
  tables.tokens.emplace_back("f", 1 << 24);
  RequireError(BytePairs::Create(tables), StatusCode::kInvalidArgument, {"'f'", "16777216"});
  tables = Letters({});
  tables.special = {uint64_t{1} << 40};
  RequireError(BytePairs::Create(tables), StatusCode::kInvalidArgument, {"special"});
}

}  // namespace
}  // namespace leeway::byte_pairs
