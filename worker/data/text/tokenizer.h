// The interface that turns a text into tokens. data.train.unit selects the implementation.
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
  // Returns the size of the vocabulary. The numbers of all tokens are below this size.
  virtual uint32_t vocabulary() const = 0;
  // Returns all tokens of a file. Returns INVALID_ARGUMENT, with the place in the file, if some
  // text is not in the vocabulary. Returns RESOURCE_EXHAUSTED beyond kMaxDatasetBytes.
  virtual absl::StatusOr<Tokens> Encode(MappedFile file) const = 0;
};

// Makes the tokenizer of a job whose `train` source is text. The job uses the same tokenizer for
// the test data. Reads all training files if they define the vocabulary. Errors are at their keys.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(const v1::TrainingJob& job,
                                                         const std::string& data_dir);

}  // namespace leeway
