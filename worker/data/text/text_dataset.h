// Windows of texts as examples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/dataset.h"
#include "worker/data/text/tokens.h"

namespace leeway {

// A stretch of a text, within which all windows lie.
struct TextPart {
  // As errors name it.
  std::string path;
  std::shared_ptr<const Tokens> tokens;
  size_t first = 0;
  size_t count = 0;
};

// Example i of a part is the window of `context` tokens that begins at its token i * context, of
// shape context x 1 x 1. Its labels are the tokens that follow each of them. Where windows are
// drawn, for training, CopyRows lets one begin at any of the `context` tokens from there on.
//
// n tokens have (n - 1) / context examples. Drawn ones are n / context - 1: the last of them must
// end within the part wherever it begins. No window spans two parts.
class TextDataset final : public Dataset {
 public:
  enum class Windows { kInPlace, kDrawn };

  // INVALID_ARGUMENT if there is no part, or one that is too short for an example;
  // RESOURCE_EXHAUSTED beyond kMaxExamples.
  static absl::StatusOr<std::unique_ptr<TextDataset>> Create(std::vector<TextPart> parts,
                                                             uint32_t context, uint32_t vocabulary,
                                                             Windows windows);

  size_t size() const override { return ends_.back(); }
  const ImageShape& shape() const override { return shape_; }
  size_t labels_each() const override { return shape_.height; }
  std::span<const float> labels() const override { return {}; }
  uint32_t classes() const override { return vocabulary_; }
  uint64_t bytes() const override;

  absl::Status CopyBatch(size_t first, size_t count, Batch& batch) const override;
  // One draw a window.
  absl::Status CopyRows(std::span<const uint32_t> rows, const Augmenter& augmenter,
                        RandomStream draws, Batch& batch) const override;

 private:
  TextDataset(std::vector<TextPart> parts, uint32_t context, uint32_t vocabulary, Windows windows);
  size_t ExamplesOf(const TextPart& part) const;
  // Example `row`, begun `later` tokens later, as the batch's example `i`.
  void CopyWindow(size_t row, size_t later, size_t i, Batch& batch) const;

  const std::vector<TextPart> parts_;
  const ImageShape shape_;
  const uint32_t vocabulary_;
  const Windows windows_;
  // Examples of each part and all before it.
  std::vector<size_t> ends_;
};

}  // namespace leeway
