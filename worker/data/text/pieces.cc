#include "worker/data/text/pieces.h"

namespace leeway {
namespace {

// All characters that are White_Space in Unicode. \s of RE2 covers ASCII only.
#define WHITE "\\p{Z}\\t-\\r\\x{85}"

// GPT-2's expression, with its last two alternatives joined into one. RE2 cannot look ahead, so
// EndOf tells the two apart.
constexpr char kPieceExpression[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" WHITE "\\p{L}\\p{N}]+|[" WHITE "]+";
constexpr char kWhite[] = "[" WHITE "]+";
#undef WHITE

// Returns true if a character whose last byte is `byte` may be white space.
bool MayBeWhite(char byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r') || (byte & 0x80) != 0;
}

// Returns the number of bytes of the character that ends before `end`.
size_t LastCharacter(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && (text[begin] & 0xc0) == 0x80) --begin;
  return end - begin;
}

bool Match(const RE2& expression, std::string_view text, size_t at, size_t& end) {
  const re2::StringPiece all(text.data(), text.size());
  re2::StringPiece found;
  if (!expression.Match(all, at, text.size(), RE2::ANCHOR_START, &found, 1)) return false;
  end = at + found.size();
  return true;
}

}  // namespace

PieceCutter::PieceCutter() : piece_(kPieceExpression, RE2::Quiet), white_(kWhite, RE2::Quiet) {}

std::string_view PieceCutter::Expression() {
  return "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
}

size_t PieceCutter::EndOf(std::string_view text, size_t at) const {
  size_t end = at + 1;
  if (!Match(piece_, text, at, end)) return end;
  if (!MayBeWhite(text[end - 1]) || end == text.size()) return end;
  size_t white = at;
  const bool all_white = Match(white_, text, at, white) && white == end;
  if (!all_white) return end;
  // The last space before a word belongs to the word.
  const size_t without_last = end - LastCharacter(text, end);
  return without_last > at ? without_last : end;
}

}  // namespace leeway
