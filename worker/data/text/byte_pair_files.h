// Reads the files of byte-pair tokenizers.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/data/text/byte_pairs.h"

namespace leeway {

// `vocabulary`, in the data folder, is a tokenizer.json of Hugging Face's tokenizers if its name
// ends in .json, or a folder with vocab.json and merges.txt. INVALID_ARGUMENT names the file if it
// is not a GPT-2 tokenizer: it has another model than byte-level BPE, a normalizer, other rules for
// pieces than GPT-2's, or puts a space before each text.
absl::StatusOr<BytePairTables> ReadBytePairs(const std::string& data_dir,
                                             const std::string& vocabulary);

}  // namespace leeway
