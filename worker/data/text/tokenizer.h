// The interface that turns a text into tokens: data.train.unit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/data_file.h"
#include "worker/data/text/tokens.h"

namespace leeway {

// Immutable, so thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // The size of the vocabulary. All tokens have numbers below it.
  virtual uint32_t vocabulary() const = 0;
  // Returns all tokens of a file. INVALID_ARGUMENT, with the place in the file, for text that has
  // no token; RESOURCE_EXHAUSTED beyond kMaxDatasetBytes.
  virtual absl::StatusOr<Tokens> Encode(MappedFile file) const = 0;
};

// Makes the tokenizer of a job whose `train` source is text. It reads the test data, too. Reads all
// training files where they define the vocabulary. Errors have their keys.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(const v1::TrainingJob& job,
                                                         const std::string& data_dir);

}  // namespace leeway
