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

absl::Status Bad(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

absl::StatusOr<Json> ParseJson(const MappedFile& file) {
  const std::string_view text = file.content.bytes();
  if (text.size() > kMaxVocabularyBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        file.path, ": has ", text.size(), " bytes; a vocabulary may have ", kMaxVocabularyBytes));
  }
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& error) {
    return Bad(file.path, absl::StrCat("byte ", error.byte, ": no JSON"));
  }
}

// An object of tokens and their numbers.
absl::Status AddTokens(const Json& vocabulary, const std::string& path, BytePairTables& tables) {
  if (!vocabulary.is_object() || vocabulary.empty()) {
    return Bad(path, "the vocabulary is no object of tokens and their numbers");
  }
  for (const auto& [token, number] : vocabulary.items()) {
    if (!number.is_number_unsigned()) {
      return Bad(path, absl::StrCat("the number of token ", Quote(token), " is none from 0 on"));
    }
    tables.tokens.emplace_back(token, number.get<uint64_t>());
  }
  return absl::OkStatus();
}

absl::Status AddMerge(absl::string_view line, const std::string& place, BytePairTables& tables) {
  const std::vector<std::string> parts = absl::StrSplit(line, ' ');
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) {
    return Bad(place,
               absl::StrCat("a merge is two tokens with a space between, not ", Quote(line)));
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

// A member of an object; null if it is not there.
const Json& Member(const Json& object, const char* name) {
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

// What would give other tokens than GPT-2's encoder.
absl::Status CheckModel(const Json& model, const std::string& path) {
  if (Member(model, "type") != "BPE" && !Member(model, "type").is_null()) {
    return Bad(path, "its model is not BPE; only byte-level BPE, as GPT-2 has it, is read");
  }
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                          "byte_fallback", "ignore_merges"}) {
    if (!IsSet(Member(model, key))) continue;
    return Bad(path,
               absl::StrCat("model.", key, " is set, which GPT-2's byte-level BPE does not have"));
  }
  return absl::OkStatus();
}

absl::Status CheckByteLevel(const Json& cutter, bool cut_before, const std::string& path) {
  if (IsSet(Member(cutter, "add_prefix_space"))) {
    return Bad(path, "pre_tokenizer.add_prefix_space puts a space before a text; set it to false");
  }
  const Json& uses = Member(cutter, "use_regex");
  const bool cuts = uses.is_null() || IsSet(uses);
  if (cuts == cut_before) {
    return Bad(path, "its pre_tokenizer does not cut texts into pieces as GPT-2 does");
  }
  return absl::OkStatus();
}

// ByteLevel, which cuts by GPT-2's expression, or that expression and then ByteLevel without one.
absl::Status CheckCutter(const Json& cutter, const std::string& path) {
  const Json& steps = Member(cutter, "pretokenizers");
  if (Member(cutter, "type") == "ByteLevel") return CheckByteLevel(cutter, false, path);
  const bool two = steps.is_array() && steps.size() == 2;
  const bool split = two && Member(steps[0], "type") == "Split" &&
                     Member(Member(steps[0], "pattern"), "Regex") == PieceCutter::Expression() &&
                     Member(steps[0], "behavior") == "Isolated" &&
                     !IsSet(Member(steps[0], "invert"));
  if (split && Member(steps[1], "type") == "ByteLevel") {
    return CheckByteLevel(steps[1], true, path);
  }
  return Bad(path, "its pre_tokenizer is not ByteLevel, as GPT-2 has it");
}

absl::Status AddMerges(const Json& merges, const std::string& path, BytePairTables& tables) {
  if (!merges.is_array()) return Bad(path, "model.merges is no list");
  for (const Json& merge : merges) {
    const bool pair =
        merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    const std::string place = absl::StrCat(path, ": model.merges.", tables.merges.size());
    if (pair) {
      tables.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    } else if (merge.is_string()) {
      RETURN_IF_ERROR(AddMerge(merge.get_ref<const std::string&>(), place, tables));
    } else {
      return Bad(place, "a merge is two tokens");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<BytePairTables> ReadTokenizerJson(const std::string& data_dir,
                                                 const std::string& name) {
  ASSIGN_OR_RETURN(const MappedFile file, MapDataFile(data_dir, name));
  ASSIGN_OR_RETURN(const Json json, ParseJson(file));
  const Json& model = Member(json, "model");
  if (!model.is_object()) return Bad(file.path, "has no model: is it a tokenizer.json?");
  RETURN_IF_ERROR(CheckModel(model, file.path));
  if (!Member(json, "normalizer").is_null()) {
    return Bad(file.path, "has a normalizer, which GPT-2's byte-level BPE does not have");
  }
  RETURN_IF_ERROR(CheckCutter(Member(json, "pre_tokenizer"), file.path));
  BytePairTables tables;
  tables.merges_place = absl::StrCat(file.path, ": model.merges");
  RETURN_IF_ERROR(AddTokens(Member(model, "vocab"), file.path, tables));
  RETURN_IF_ERROR(AddMerges(Member(model, "merges"), file.path, tables));
  for (const Json& added : Member(json, "added_tokens")) {
    const Json& id = Member(added, "id");
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
