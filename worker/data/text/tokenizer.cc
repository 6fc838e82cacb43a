#include "worker/data/text/tokenizer.h"

#include <vector>

#include "common/job_key.h"
#include "common/status.h"
#include "worker/data/text/byte_pair_files.h"
#include "worker/data/text/byte_pair_tokenizer.h"
#include "worker/data/text/byte_tokenizer.h"
#include "worker/data/text/character_tokenizer.h"

namespace leeway {
namespace {

constexpr char kTrain[] = "data.train";

absl::Status AddCharacters(const std::string& data_dir, const std::string& name,
                           CharacterSet& characters) {
  ASSIGN_OR_RETURN(const MappedFile file, MapDataFile(data_dir, name));
  return characters.Add(file.path, file.content.bytes());
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OfCharacters(const v1::Text& text,
                                                        const std::string& data_dir) {
  CharacterSet characters;
  if (text.has_vocabulary()) {
    const absl::Status added = AddCharacters(data_dir, text.vocabulary(), characters);
    RETURN_IF_ERROR(AtKey(AtKey(added, "vocabulary"), kTrain));
    return std::make_unique<CharacterTokenizer>(characters, text.vocabulary());
  }
  for (int i = 0; i < text.files_size(); ++i) {
    const absl::Status added = AddCharacters(data_dir, text.files(i), characters);
    RETURN_IF_ERROR(AtKey(AtKey(added, absl::StrCat("files.", i)), kTrain));
  }
  return std::make_unique<CharacterTokenizer>(characters, "");
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OfBytePairs(const v1::Text& text,
                                                       const std::string& data_dir) {
  if (!text.has_vocabulary()) {
    return absl::InvalidArgumentError(
        "required key is missing with unit bpe: name a folder with vocab.json and merges.txt, or a "
        "tokenizer.json");
  }
  ASSIGN_OR_RETURN(const BytePairTables tables, ReadBytePairs(data_dir, text.vocabulary()));
  ASSIGN_OR_RETURN(BytePairs pairs, BytePairs::Create(tables));
  return std::make_unique<BytePairTokenizer>(std::move(pairs));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(const v1::TrainingJob& job,
                                                         const std::string& data_dir) {
  const v1::Text& text = job.data().train().text();
  switch (text.unit()) {
    case v1::TEXT_UNIT_BYTES:
      return std::make_unique<ByteTokenizer>();
    case v1::TEXT_UNIT_CHARACTERS:
      return OfCharacters(text, data_dir);
    case v1::TEXT_UNIT_BPE:
      break;
  }
  auto made = OfBytePairs(text, data_dir);
  if (!made.ok()) return AtKey(AtKey(made.status(), "vocabulary"), kTrain);
  return made;
}

}  // namespace leeway
