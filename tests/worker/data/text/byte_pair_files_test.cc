// Tokenizers' files, and the tokens that they make of texts.

#include "absl/strings/str_replace.h"
#include "tests/worker/data/data_test_util.h"
#include "worker/data/dataset.h"
#include "worker/data/sources/test_data.h"
#include "worker/data/text/byte_pairs.h"

namespace leeway::byte_pair_files {
namespace {

using absl::StatusCode;
using Floats = std::vector<float>;

constexpr char kVocabulary[] =
    R"({"a": 0, "b": 1, "Ġ": 2, "Ċ": 3, "ab": 4, "Ġab": 5, "<|endoftext|>": 6})";
constexpr char kMerges[] = "#version: 0.2\na b\nĠ ab\n";
constexpr char kTokenizer[] = R"({"version": "1.0", "normalizer": null,
  "added_tokens": [{"id": 6, "content": "<|endoftext|>"}],
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
            "byte_fallback": false, "vocab": {"a": 0, "b": 1, "Ġ": 2, "Ċ": 3, "ab": 4, "Ġab": 5},
            "merges": ["a b", ["Ġ", "ab"]]}})";

absl::StatusOr<std::unique_ptr<Dataset>> Open(const DataFolder& folder,
                                              const std::string& vocabulary) {
  const v1::TrainingJob job =
      FromText("data { train { text { context: 1 unit: TEXT_UNIT_BPE files: 'f' vocabulary: '" +
               vocabulary + "' } } test { text { context: 1 unit: TEXT_UNIT_BPE files: 'f' } } }");
  return OpenTestData(job, folder.path());
}

Floats TokensOf(const DataFolder& folder, const std::string& vocabulary) {
  const auto data = Open(folder, vocabulary);
  INFO(data.status().ToString());
  REQUIRE(data.ok());
  CHECK((*data)->classes() == 7);
  Batch batch;
  REQUIRE((*data)->CopyBatch(0, (*data)->size(), batch).ok());
  batch.features.push_back(batch.labels.back());
  return batch.features;
}

TEST_CASE("vocab.json with merges.txt, and tokenizer.json, give the same tokens") {
  DataFolder folder;
  folder.Write("gpt/vocab.json", kVocabulary);
  folder.Write("gpt/merges.txt", kMerges);
  folder.Write("tokenizer.json", kTokenizer);
  folder.Write("f", "ab ab  abba\n ab\n");
  const Floats expected = {4, 5, 2, 5, 1, 0, 3, 5, 3};
  CHECK(TokensOf(folder, "gpt") == expected);
  CHECK(TokensOf(folder, "tokenizer.json") == expected);
}

TEST_CASE("A text with bytes that are no tokens is refused with the place") {
  DataFolder folder;
  folder.Write("tokenizer.json", kTokenizer);
  folder.Write("f", "ab\nabc");
  RequireError(Open(folder, "tokenizer.json"), StatusCode::kInvalidArgument,
               {"data.test.files.0", "f:2:3: byte 0x63 is not a token"});
  folder.Write("f", "ab\xff");
  RequireError(Open(folder, "tokenizer.json"), StatusCode::kInvalidArgument, {"f:1:3", "UTF-8"});
}

TEST_CASE("A tokenizer.json that is not GPT-2's form is refused, saying what is not") {
  DataFolder folder;
  const std::vector<std::array<std::string, 3>> edits = {
      {R"("normalizer": null)", R"("normalizer": {"type": "NFC"})", "normalizer"},
      {R"("type": "BPE")", R"("type": "Unigram")", "not BPE"},
      {R"("dropout": null)", R"("dropout": 0.1)", "model.dropout"},
      {R"("byte_fallback": false)", R"("byte_fallback": true)", "model.byte_fallback"},
      {R"("continuing_subword_prefix": "")", R"("continuing_subword_prefix": "##")", "prefix"},
      {R"("add_prefix_space": false)", R"("add_prefix_space": true)", "add_prefix_space"},
      {R"("use_regex": true)", R"("use_regex": false)", "pre_tokenizer"},
      {R"("type": "ByteLevel")", R"("type": "Metaspace")", "pre_tokenizer"},
      {R"("a": 0)", R"("a": -1)", "'a'"},
      {R"("a": 0)", R"("a": "x")", "'a'"},
      {R"("a b")", R"("a  b")", "model.merges.0"},
      {R"("a b")", R"(7)", "model.merges.0"},
      {R"("a b")", R"("b a")", "merge 1 of 'b' and 'a'"},
      {R"("model")", R"("modle")", "no model"},
      {R"("vocab")", R"("vocabulary")", "vocabulary"},
      {R"("merges")", R"("mergers")", "model.merges"},
  };
  folder.Write("f", "ab ab");
  for (const auto& [from, to, said] : edits) {
    const std::string edited = absl::StrReplaceAll(kTokenizer, {{from, to}});
    REQUIRE(edited != kTokenizer);
    INFO(to);
    folder.Write("tokenizer.json", edited);
    RequireError(Open(folder, "tokenizer.json"), StatusCode::kInvalidArgument,
                 {"data.train.vocabulary", "tokenizer.json", said});
  }
}

TEST_CASE("GPT-2's expression may stand beside ByteLevel, another may not") {
  DataFolder folder;
  const std::string split = R"({"type": "Sequence", "pretokenizers": [{"type": "Split",
      "pattern": {"Regex": "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},
      "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})";
  const std::string plain =
      R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": true})";
  const std::string sequence = absl::StrReplaceAll(kTokenizer, {{plain, split}});
  REQUIRE(sequence != kTokenizer);
  folder.Write("f", "ab  ab");
  folder.Write("tokenizer.json", sequence);
  CHECK(TokensOf(folder, "tokenizer.json") == Floats{4, 2, 5});
  folder.Write("tokenizer.json", absl::StrReplaceAll(sequence, {{"'s|'t", "'S|'T"}}));
  RequireError(Open(folder, "tokenizer.json"), StatusCode::kInvalidArgument, {"pre_tokenizer"});
}

TEST_CASE("A vocabulary that is cut off anywhere is an error, never a crash") {
  DataFolder folder;
  folder.Write("f", "ab ab");
  const std::string whole = kTokenizer;
  for (size_t size = 0; size < whole.size(); size += 3) {
    folder.Write("tokenizer.json", whole.substr(0, size));
    RequireError(Open(folder, "tokenizer.json"), StatusCode::kInvalidArgument, {"tokenizer.json"});
  }
  folder.Write("gpt/vocab.json", kVocabulary);
  folder.Write("gpt/merges.txt", "#version: 0.2\na b\nĠ\n");
  RequireError(Open(folder, "gpt"), StatusCode::kInvalidArgument, {"merges.txt:3", "two tokens"});
  std::filesystem::remove(folder.path() + "/gpt/merges.txt");
  RequireError(Open(folder, "gpt"), StatusCode::kNotFound,
               {"data.train.vocabulary", "merges.txt: no such file"});
  RequireError(Open(folder, "absent"), StatusCode::kNotFound, {"absent/vocab.json"});
}

}  // namespace
}  // namespace leeway::byte_pair_files
