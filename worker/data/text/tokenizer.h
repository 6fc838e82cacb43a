// How a text becomes tokens: data.train.unit.
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
  // Tokens have numbers below this.
  virtual uint32_t vocabulary() const = 0;
  // All tokens of a file. INVALID_ARGUMENT, with the place in it, for what is no token;
  // RESOURCE_EXHAUSTED beyond kMaxDatasetBytes.
  virtual absl::StatusOr<Tokens> Encode(MappedFile file) const = 0;
};

// That of a job whose `train` source is text; its test data are read by it, too. Reads all training
// files where these make the vocabulary. Errors have their keys.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(const v1::TrainingJob& job,
                                                         const std::string& data_dir);

}  // namespace leeway
