#include "worker/data/text/byte_pair_files.h"

#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "worker/data/data_file.h"
#include "worker/data/limits.h"
#include "worker/data/text.h"
#include "worker/data/text/pieces.h"

namespace leeway {
namespace {

using Json = nlohmann::json;

absl::Status BadTokenizer(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

absl::StatusOr<Json> ParseJson(const MappedFile& file) {
  const std::string_view text = file.content.bytes();
  if (text.size() > kMaxVocabularyBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(file.path, ": has ", text.size(),
                                                     " bytes, but a vocabulary may have at most ",
                                                     kMaxVocabularyBytes));
  }
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& error) {
    return BadTokenizer(file.path, absl::StrCat("byte ", error.byte, ": not JSON"));
  }
}

// Adds an object of tokens and their numbers to `tables`.
absl::Status AddTokens(const Json& vocabulary, const std::string& path, BytePairTables& tables) {
  if (!vocabulary.is_object() || vocabulary.empty()) {
    return BadTokenizer(path, "the vocabulary is not an object of tokens and their numbers");
  }
  for (const auto& [token, number] : vocabulary.items()) {
    if (!number.is_number_unsigned()) {
      return BadTokenizer(path, absl::StrCat("the number of token ", Quote(token),
                                             " is not a whole number from 0"));
    }
    tables.tokens.emplace_back(token, number.get<uint64_t>());
  }
  return absl::OkStatus();
}

absl::Status AddMerge(absl::string_view line, const std::string& place, BytePairTables& tables) {
  const std::vector<std::string> parts = absl::StrSplit(line, ' ');
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) {
    return BadTokenizer(
        place, absl::StrCat("a merge is two tokens with a space between them, not ", Quote(line)));
  }
  tables.merges.emplace_back(parts[0], parts[1]);
  return absl::OkStatus();
}

absl::StatusOr<BytePairTables> ReadFolder(const std::string& data_dir, const std::string& folder) {
  ASSIGN_OR_RETURN(const MappedFile vocabulary, MapDataFile(data_dir, folder + "/vocab.json"));
  ASSIGN_OR_RETURN(DataFile merges, OpenDataFile(data_dir, folder + "/merges.txt"));
  ASSIGN_OR_RETURN(const Json tokens, ParseJson(vocabulary));
  BytePairTables tables;
  RETURN_IF_ERROR(AddTokens(tokens, vocabulary.path, tables));
  tables.merges_place = merges.path;
  Lines lines(*merges.bytes, merges.path);
  absl::string_view line;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, lines.Next(line));
    if (!more) return tables;
    const bool header = lines.number() == 1 && absl::StartsWith(line, "#version");
    if (header || line.empty()) continue;
    RETURN_IF_ERROR(AddMerge(line, absl::StrCat(merges.path, ":", lines.number()), tables));
  }
}

// Returns a member of an object; null if the object does not have it.
const Json& MemberOf(const Json& object, const char* name) {
  static const Json none;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : none;
}

bool IsSet(const Json& value) {
  if (value.is_null()) return false;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  if (value.is_number()) return value.get<double>() != 0;
  return !value.empty();
}

// Returns an error for settings that would give other tokens than GPT-2's encoder does.
absl::Status CheckModel(const Json& model, const std::string& path) {
  if (MemberOf(model, "type") != "BPE" && !MemberOf(model, "type").is_null()) {
    return BadTokenizer(path, "its model is not BPE; only GPT-2's byte-level BPE is supported");
  }
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                          "byte_fallback", "ignore_merges"}) {
    if (!IsSet(MemberOf(model, key))) continue;
    return BadTokenizer(
        path,
        absl::StrCat("model.", key, " is set, but GPT-2's byte-level BPE has no such setting"));
  }
  return absl::OkStatus();
}

absl::Status CheckByteLevel(const Json& cutter, bool cut_before, const std::string& path) {
  if (IsSet(MemberOf(cutter, "add_prefix_space"))) {
    return BadTokenizer(
        path, "pre_tokenizer.add_prefix_space puts a space before a text; set it to false");
  }
  const Json& uses = MemberOf(cutter, "use_regex");
  const bool cuts = uses.is_null() || IsSet(uses);
  if (cuts == cut_before) {
    return BadTokenizer(path, "its pre_tokenizer does not cut texts into pieces as GPT-2 does");
  }
  return absl::OkStatus();
}

// Returns an error unless `cutter` is ByteLevel with GPT-2's expression, or that expression
// followed by ByteLevel without an expression.
absl::Status CheckCutter(const Json& cutter, const std::string& path) {
  const Json& steps = MemberOf(cutter, "pretokenizers");
  if (MemberOf(cutter, "type") == "ByteLevel") return CheckByteLevel(cutter, false, path);
  const bool two = steps.is_array() && steps.size() == 2;
  const bool split =
      two && MemberOf(steps[0], "type") == "Split" &&
      MemberOf(MemberOf(steps[0], "pattern"), "Regex") == PieceCutter::Expression() &&
      MemberOf(steps[0], "behavior") == "Isolated" && !IsSet(MemberOf(steps[0], "invert"));
  if (split && MemberOf(steps[1], "type") == "ByteLevel") {
    return CheckByteLevel(steps[1], true, path);
  }
  return BadTokenizer(path, "its pre_tokenizer is not GPT-2's ByteLevel");
}

absl::Status AddMerges(const Json& merges, const std::string& path, BytePairTables& tables) {
  if (!merges.is_array()) return BadTokenizer(path, "model.merges is not a list");
  for (const Json& merge : merges) {
    const bool pair =
        merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    const std::string place = absl::StrCat(path, ": model.merges.", tables.merges.size());
    if (pair) {
      tables.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    } else if (merge.is_string()) {
      RETURN_IF_ERROR(AddMerge(merge.get_ref<const std::string&>(), place, tables));
    } else {
      return BadTokenizer(place, "a merge must be a list of two tokens, or a string of them");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<BytePairTables> ReadTokenizerJson(const std::string& data_dir,
                                                 const std::string& name) {
  ASSIGN_OR_RETURN(const MappedFile file, MapDataFile(data_dir, name));
  ASSIGN_OR_RETURN(const Json json, ParseJson(file));
  const Json& model = MemberOf(json, "model");
  if (!model.is_object()) return BadTokenizer(file.path, "has no model: is it a tokenizer.json?");
  RETURN_IF_ERROR(CheckModel(model, file.path));
  if (!MemberOf(json, "normalizer").is_null()) {
    return BadTokenizer(file.path,
                        "has a normalizer, but GPT-2's byte-level BPE has no normalizer");
  }
  RETURN_IF_ERROR(CheckCutter(MemberOf(json, "pre_tokenizer"), file.path));
  BytePairTables tables;
  tables.merges_place = absl::StrCat(file.path, ": model.merges");
  RETURN_IF_ERROR(AddTokens(MemberOf(model, "vocab"), file.path, tables));
  RETURN_IF_ERROR(AddMerges(MemberOf(model, "merges"), file.path, tables));
  for (const Json& added : MemberOf(json, "added_tokens")) {
    const Json& id = MemberOf(added, "id");
    if (id.is_number_unsigned()) tables.special.push_back(id.get<uint64_t>());
  }
  return tables;
}

}  // namespace

absl::StatusOr<BytePairTables> ReadBytePairs(const std::string& data_dir,
                                             const std::string& vocabulary) {
  if (absl::EndsWith(vocabulary, ".json")) return ReadTokenizerJson(data_dir, vocabulary);
  return ReadFolder(data_dir, vocabulary);
}

}  // namespace leeway
