#include "worker/data/text/byte_pairs.h"

#include <algorithm>
#include <optional>
#include <queue>

#include "common/status.h"
#include "worker/data/limits.h"
#include "worker/data/text.h"
#include "worker/data/text/utf8.h"

namespace leeway {
namespace {

// Returns true if GPT-2's alphabet writes `byte` as the character with that code point. The
// alphabet writes the other bytes, in order, as the characters from 256 on.
bool IsItself(uint32_t byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

// Returns the byte of each character of the alphabet.
std::unordered_map<uint32_t, uint8_t> Alphabet() {
  std::unordered_map<uint32_t, uint8_t> bytes;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    bytes[IsItself(byte) ? byte : next++] = static_cast<uint8_t>(byte);
  }
  return bytes;
}

// Returns the bytes that `token` stands for, or nothing if a character of the token is not in the
// alphabet.
std::optional<std::string> BytesOf(const std::unordered_map<uint32_t, uint8_t>& alphabet,
                                   std::string_view token) {
  std::string bytes;
  while (!token.empty()) {
    const std::optional<Character> character = FirstCharacter(token);
    if (!character.has_value()) return std::nullopt;
    const auto byte = alphabet.find(character->code);
    if (byte == alphabet.end()) return std::nullopt;
    bytes.push_back(static_cast<char>(byte->second));
    token.remove_prefix(character->bytes);
  }
  return bytes;
}

using Numbers = std::unordered_map<std::string, uint32_t>;

// Returns the number of each token by the token's bytes. Tokens outside the alphabet are special
// tokens and are left out.
absl::StatusOr<Numbers> NumbersOf(const BytePairTables& tables) {
  const auto alphabet = Alphabet();
  Numbers numbers;
  for (const auto& [token, number] : tables.tokens) {
    if (number >= kMaxClasses) {
      return absl::InvalidArgumentError(absl::StrCat("token ", Quote(token), " has number ", number,
                                                     "; numbers must be below ", kMaxClasses));
    }
    const std::optional<std::string> bytes = BytesOf(alphabet, token);
    if (!bytes.has_value() || bytes->empty()) continue;
    numbers[*bytes] = static_cast<uint32_t>(number);
  }
  return numbers;
}

}  // namespace

absl::StatusOr<BytePairs> BytePairs::Create(const BytePairTables& tables) {
  ASSIGN_OR_RETURN(const Numbers numbers, NumbersOf(tables));
  BytePairs pairs;
  for (const auto& [token, number] : tables.tokens) {
    pairs.vocabulary_ = std::max(pairs.vocabulary_, static_cast<uint32_t>(number) + 1);
  }
  for (const uint64_t number : tables.special) {
    if (number >= kMaxClasses) {
      return absl::InvalidArgumentError(absl::StrCat("a special token has number ", number,
                                                     "; numbers must be below ", kMaxClasses));
    }
    pairs.vocabulary_ = std::max(pairs.vocabulary_, static_cast<uint32_t>(number) + 1);
  }
  for (const auto& [bytes, number] : numbers) {
    if (bytes.size() == 1) pairs.bytes_[static_cast<uint8_t>(bytes[0])] = number;
  }
  const auto alphabet = Alphabet();
  for (size_t i = 0; i < tables.merges.size(); ++i) {
    const auto& [left, right] = tables.merges[i];
    const auto number = [&](const std::string& token) {
      const auto bytes = BytesOf(alphabet, token);
      const auto found = bytes.has_value() ? numbers.find(*bytes) : numbers.end();
      return found == numbers.end() ? kNone : found->second;
    };
    const uint32_t l = number(left), r = number(right), merged = number(left + right);
    if (l == kNone || r == kNone || merged == kNone) {
      return absl::InvalidArgumentError(absl::StrCat(
          tables.merges_place, ": merge ", i + 1, " of ", Quote(left), " and ", Quote(right),
          ": the vocabulary lacks one of them or the merged token; are the files from one "
          "tokenizer?"));
    }
    pairs.merges_.insert({uint64_t{l} << 32 | r, {static_cast<uint32_t>(i), merged}});
  }
  return pairs;
}

const BytePairs::Merge* BytePairs::Find(uint32_t left, uint32_t right) const {
  const auto found = merges_.find(uint64_t{left} << 32 | right);
  return found == merges_.end() ? nullptr : &found->second;
}

// A token of the piece, as an entry in a linked list.
struct BytePairs::Symbol {
  uint32_t token;
  // The indices of the neighbours. The index is kNone at an end of the list.
  uint32_t previous;
  uint32_t next;
};

class BytePairs::Merging {
 public:
  Merging(const BytePairs& pairs, std::string_view piece) : pairs_(pairs) {
    const auto size = static_cast<uint32_t>(piece.size());
    for (uint32_t i = 0; i < size; ++i) {
      symbols_.push_back({pairs.bytes_[static_cast<uint8_t>(piece[i])], i == 0 ? kNone : i - 1,
                          i + 1 == size ? kNone : i + 1});
    }
    for (uint32_t i = 0; i < size; ++i) Offer(i);
  }

  void Run() {
    while (!candidates_.empty()) {
      const Candidate candidate = candidates_.top();
      candidates_.pop();
      Symbol& left = symbols_[candidate.left];
      // Skips this merge if one of its two tokens has already become part of another token.
      if (left.token != candidate.left_token || left.next == kNone) continue;
      Symbol& right = symbols_[left.next];
      if (right.token != candidate.right_token) continue;
      left.token = candidate.merged;
      left.next = right.next;
      right.token = kNone;
      if (left.next != kNone) symbols_[left.next].previous = candidate.left;
      Offer(candidate.left);
      if (left.previous != kNone) Offer(left.previous);
    }
  }

  void Append(std::vector<uint32_t>& out) const {
    for (uint32_t i = 0; i != kNone; i = symbols_[i].next) out.push_back(symbols_[i].token);
  }

 private:
  struct Candidate {
    uint32_t rank;
    uint32_t left;
    uint32_t left_token;
    uint32_t right_token;
    uint32_t merged;
    // Orders the merges so that the one with the lowest rank is on top. Of merges with the same
    // rank, the leftmost is on top.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };

  void Offer(uint32_t left) {
    const Symbol& symbol = symbols_[left];
    if (symbol.next == kNone) return;
    const uint32_t right_token = symbols_[symbol.next].token;
    const Merge* const merge = pairs_.Find(symbol.token, right_token);
    if (merge == nullptr) return;
    candidates_.push({merge->rank, left, symbol.token, right_token, merge->token});
  }

  const BytePairs& pairs_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> candidates_;
};

void BytePairs::Encode(std::string_view piece, std::vector<uint32_t>& out) const {
  if (piece.empty()) return;
  Merging merging(*this, piece);
  merging.Run();
  merging.Append(out);
}

}  // namespace leeway
