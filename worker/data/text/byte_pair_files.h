// Reads the files of byte-pair tokenizers.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/data/text/byte_pairs.h"

namespace leeway {

// Reads the tables of a tokenizer. `vocabulary`, in the data folder, is a tokenizer.json of Hugging
// Face's tokenizers if its name ends in .json, or a folder with vocab.json and merges.txt. Returns
// INVALID_ARGUMENT, naming the file, if it is not a GPT-2 tokenizer. A GPT-2 tokenizer has
// byte-level BPE as its model, and no normalizer. It cuts texts into pieces by GPT-2's rules, and
// puts no space before a text.
absl::StatusOr<BytePairTables> ReadBytePairs(const std::string& data_dir,
                                             const std::string& vocabulary);

}  // namespace leeway
